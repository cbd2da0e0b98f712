import { type KeyboardEvent, type RefObject, useCallback, useMemo, useRef } from "react";
import { useCanvas } from "../canvas";
import { useInk } from "../ink";
import { chipCorner, type Direction, deviceAt, type MapLayout, neighbour } from "./layout";
import styles from "./MeshMap.module.css";
import { paintMap, ranksBySeries, type Scene } from "./paint";
import { type Focus, paintGroup } from "./paintGroup";
import { useMapGestures } from "./useMapGestures";
import { type Frame, projectionOf, type View } from "./viewport";

interface Props {
  layout: MapLayout;
  frame: Frame;
  /** Place in its group of every rank; ranks may be fewer than devices. */
  indices: Uint32Array;
  view: View;
  onView: (view: View) => void;
  /** The group that stands out. */
  focus: Focus | undefined;
  onHover: (rank: number | undefined) => void;
  /** Where arrows begin. */
  selected: number | undefined;
  onSelect: (rank: number | undefined) => void;
  sentence: string;
  /** Element that says which keys count. */
  keysId: string;
  surface: RefObject<HTMLCanvasElement | null>;
}

const ARROWS: Record<string, Direction> = {
  ArrowLeft: "left",
  ArrowRight: "right",
  ArrowUp: "up",
  ArrowDown: "down",
};

/** The map on two canvases: ranks below, the group that is looked at above, so that a hover repaints little. */
export function MeshMap(props: Props) {
  const { layout, frame, indices, view, focus, surface, onView, onHover, onSelect } = props;
  const holder = useRef<HTMLDivElement>(null);
  const below = useRef<HTMLCanvasElement>(null);
  const ink = useInk(holder);
  const corners = useMemo(() => cornersOf(layout), [layout]);
  const bySeries = useMemo(() => ranksBySeries(indices), [indices]);
  const scene = useMemo<Scene | undefined>(
    () =>
      ink && {
        layout,
        frame,
        indices,
        bySeries,
        corners,
        ink,
        projection: projectionOf(view, layout, frame),
      },
    [layout, frame, indices, bySeries, corners, ink, view],
  );
  const paintBelow = useCallback(
    (context: CanvasRenderingContext2D) => scene && paintMap(context, scene),
    [scene],
  );
  const paintAbove = useCallback(
    (context: CanvasRenderingContext2D) => scene && paintGroup(context, scene, focus),
    [scene, focus],
  );
  useCanvas(below, frame, paintBelow);
  useCanvas(surface, frame, paintAbove);
  const gestures = useMapGestures(surface, { layout, frame, view, onView });

  const rankAt = (event: { clientX: number; clientY: number }) => {
    const box = surface.current?.getBoundingClientRect();
    if (!box) return undefined;
    const { scale, left, top } = projectionOf(view, layout, frame);
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const found = deviceAt(layout, left + x / scale, top + y / scale);
    return found !== undefined && found < indices.length ? found : undefined;
  };
  const press = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const next = walked(event.key, props.selected, layout, indices.length);
    if (next === "elsewhere") return;
    onSelect(next);
    event.preventDefault();
  };
  return (
    <div ref={holder} className={styles.map} style={{ height: frame.height }}>
      <canvas ref={below} />
      {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: it is walked with keys of its own */}
      <canvas
        ref={surface}
        role="application"
        aria-label={props.sentence}
        aria-describedby={props.keysId}
        tabIndex={0}
        // One finger scrolls the page over the whole map, and moves a map that is larger than its window.
        style={{ touchAction: view.zoom > 1 ? "none" : "pan-y" }}
        onKeyDown={press}
        onPointerDown={gestures.onPointerDown}
        onPointerMove={(event) => {
          if (!gestures.onPointerMove(event)) onHover(rankAt(event));
        }}
        onPointerUp={gestures.onPointerUp}
        onPointerCancel={gestures.onPointerCancel}
        onPointerLeave={() => onHover(undefined)}
        onClick={(event) => {
          if (!gestures.moved()) onSelect(rankAt(event));
        }}
      />
    </div>
  );
}

/** The rank that a key leads to; "elsewhere" when the key means nothing here. */
function walked(
  key: string,
  selected: number | undefined,
  layout: MapLayout,
  ranks: number,
): number | undefined | "elsewhere" {
  const direction = ARROWS[key];
  if (direction && selected === undefined) return 0;
  if (direction && selected !== undefined) return Math.min(ranks - 1, neighbour(layout, selected, direction));
  if (key === "Home") return 0;
  if (key === "End") return ranks - 1;
  return key === "Escape" ? undefined : "elsewhere";
}

function cornersOf(layout: MapLayout): Float32Array {
  const corners = new Float32Array(2 * layout.devices);
  for (let device = 0; device < layout.devices; device++) {
    const { x, y } = chipCorner(layout, device);
    corners[2 * device] = x;
    corners[2 * device + 1] = y;
  }
  return corners;
}
