import { lazy, useDeferredValue, useId, useMemo, useRef, useState } from "react";
import type { MapAxis, MeshView } from "../../../api/queries/mesh";
import { groupOf, memberIndices } from "../../../charts/mesh/groups";
import { chipCorner, layoutOf } from "../../../charts/mesh/layout";
import { MeshMap } from "../../../charts/mesh/MeshMap";
import { revealing, type View } from "../../../charts/mesh/viewport";
import { ChartFigure } from "../../../components/ChartFigure";
import { count, plural } from "../../../lib/format";
import { useKept } from "../../../lib/kept";
import { useWidth } from "../../../lib/size";
import { AxisFacts } from "./AxisFacts";
import { AxisLegend } from "./AxisLegend";
import { AxisList } from "./AxisList";
import { boxesOf, titleOf } from "./axes";
import { MapTools } from "./MapTools";
import styles from "./Mesh.module.css";
import { RankFacts, rankSentence } from "./RankFacts";
import { useMapKeys } from "./useMapKeys";
import { steps, useMapView } from "./useMapView";

const MeshTables = lazy(async () => ({ default: (await import("./MeshTables")).MeshTables }));

interface Props {
  view: MeshView;
  axis: MapAxis;
  rank: number | undefined;
  /** Part of the map that the address names. */
  shown: View;
  onAxis: (axis: string) => void;
  onRank: (rank: number | undefined) => void;
}

/** Walking over ranks with held keys writes no address for each. */
const WRITE_AFTER_MS = 200;
const NARROWEST_HEIGHT_PX = 320;
const HIGHEST_PX = 720;

/** The map beside what it says about an axis and a rank. */
export function MapFigure({ view, axis, rank: said, shown, onAxis, onRank }: Props) {
  const { ref, width } = useWidth<HTMLDivElement>();
  const surface = useRef<HTMLCanvasElement>(null);
  const keysId = useId();
  const [hovered, setHovered] = useState<number>();
  const [kept, setRank] = useKept<number | null>(
    said ?? null,
    (next) => onRank(next ?? undefined),
    WRITE_AFTER_MS,
  );
  const rank = kept ?? undefined;
  const height = Math.round(Math.min(HIGHEST_PX, Math.max(NARROWEST_HEIGHT_PX, width * 0.62)));
  const frame = useMemo(() => ({ width, height }), [width, height]);
  const layout = useMemo(
    () => layoutOf(boxesOf(view), view.num_devices, Math.max(0.6, width / Math.max(1, height))),
    [view, width, height],
  );
  const indices = useMemo(() => memberIndices(view.world_size, axis.factors), [view, axis]);
  const map = useMapView(shown);
  const looked = hovered ?? rank;
  const focus = useMemo(
    () => (looked === undefined ? undefined : { rank: looked, members: groupOf(looked, axis.factors) }),
    [looked, axis],
  );
  const select = (next: number | undefined) => {
    setRank(next ?? null);
    if (next !== undefined) map.show(revealing(map.view, chipCorner(layout, next), layout, frame));
  };
  useMapKeys({
    view,
    axis,
    rank,
    surface,
    select,
    onAxis,
    glide: map.glide,
    steps: steps(map.view, layout, frame),
  });
  const sentence = mapSentence(view, axis);
  const spoken = useDeferredValue(
    rank === undefined ? "" : rankSentence(view, axis, rank, groupOf(rank, axis.factors)),
  );
  return (
    <ChartFigure
      title="Where every rank runs"
      sentence={sentence}
      table={() => <MeshTables view={view} axis={axis} members={focus?.members} />}
    >
      <div className={styles.screen}>
        <AxisList view={view} chosen={axis.axis} onChoose={onAxis} />
        <div className={styles.side}>
          <AxisFacts view={view} axis={axis} />
          <RankFacts view={view} axis={axis} rank={looked} members={focus?.members ?? []} />
        </div>
        <div className={styles.main}>
          <MapTools
            ranks={view.world_size}
            rank={rank}
            onFind={select}
            zoom={map.view.zoom}
            glide={map.glide}
            steps={steps(map.view, layout, frame)}
          />
          <div ref={ref} style={{ minHeight: NARROWEST_HEIGHT_PX }}>
            {width > 0 && (
              <MeshMap
                layout={layout}
                frame={frame}
                indices={indices}
                view={map.view}
                onView={map.show}
                focus={focus}
                onHover={setHovered}
                selected={rank}
                onSelect={select}
                sentence={`${titleOf(axis.axis)} coordinate of every rank. ${sentence}`}
                keysId={keysId}
                surface={surface}
              />
            )}
          </div>
          <AxisLegend axis={axis} />
          <p id={keysId} className={styles.hint}>
            Drag to move. Click the map and turn the wheel to zoom, pinch with two fingers, or use{" "}
            <kbd>+</kbd> <kbd>−</kbd> <kbd>0</kbd>. Arrow keys walk over ranks, <kbd>[</kbd> <kbd>]</kbd> over
            the group, <kbd>a</kbd> over axes.
          </p>
          <p className="visually-hidden" aria-live="polite">
            {spoken}
          </p>
        </div>
      </div>
    </ChartFigure>
  );
}

function mapSentence(view: MeshView, axis: MapAxis): string {
  const nodes = Math.ceil(view.num_devices / view.devices_per_node);
  const idle = view.num_devices - view.world_size;
  const where = `${plural(view.world_size, "rank")} on ${plural(nodes, "node")} of ${count(view.devices_per_node)} ${view.device}`;
  return `${where}${idle > 0 ? `, ${plural(idle, "device")} idle` : ""}. ${axis.sentence}`;
}
