import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import type { CollectiveFit } from "../../api/queries/hardware";
import { BandwidthChart } from "../../charts/BandwidthChart";
import type { PointPlace } from "../../charts/bandwidth";
import { SeriesSwatch } from "../../charts/series";
import { ChartFigure } from "../../components/ChartFigure";
import { useWidth } from "../../lib/size";
import { readClustersSearch } from "../clusters.search";
import styles from "./Clusters.module.css";
import { CollectiveTables } from "./CollectiveTables";
import {
  byOperation,
  curveId,
  curveSentence,
  drawnCurve,
  groupName,
  operationSentence,
  pointSentence,
} from "./collectiveCurves";

const HEIGHT_PX = 280;

/** How fast each collective is at each message size, an operation a figure. */
export function CollectivesFigure({ collectives }: { collectives: readonly CollectiveFit[] }) {
  const { curve: chosen } = readClustersSearch.full(useSearch({ from: "/clusters" }));
  const navigate = useNavigate();
  const choose = (curve: string) =>
    void navigate({
      to: "/clusters",
      search: (before) => ({ ...before, curve: curve || undefined }),
      replace: true,
      resetScroll: false,
    });
  return (
    <div className={styles.operations}>
      {[...byOperation(collectives)].map(([operation, curves]) => (
        <OperationFigure
          key={operation}
          operation={operation}
          curves={curves}
          chosen={chosen}
          onChoose={choose}
        />
      ))}
    </div>
  );
}

interface Props {
  operation: string;
  curves: readonly CollectiveFit[];
  chosen: string;
  onChoose: (curve: string) => void;
}

function OperationFigure({ operation, curves, chosen, onChoose }: Props) {
  const { ref, width } = useWidth<HTMLDivElement>();
  const [pointed, setPointed] = useState<PointPlace>();
  const drawn = useMemo(() => curves.map(drawnCurve), [curves]);
  const sentence = operationSentence(operation, curves);
  const told = curves.find((each) => curveId(each) === chosen);
  return (
    <ChartFigure
      title={`${operation}: bus bandwidth by message size`}
      sentence={sentence}
      table={() => <CollectiveTables operation={operation} curves={curves} />}
    >
      <div ref={ref} style={{ minHeight: HEIGHT_PX }}>
        {width > 0 && (
          <BandwidthChart
            curves={drawn}
            chosen={chosen}
            onChoose={onChoose}
            pointed={pointed}
            onPoint={setPointed}
            width={width}
            height={HEIGHT_PX}
            sentence={sentence}
            label={`${operation} by message size: arrows walk over measured points and curves`}
          />
        )}
      </div>
      <ul className={styles.curves}>
        {curves.map((each, series) => (
          <li key={curveId(each)}>
            <button
              type="button"
              className={styles.name}
              aria-pressed={curveId(each) === chosen}
              onClick={() => onChoose(curveId(each) === chosen ? "" : curveId(each))}
            >
              <SeriesSwatch series={series} /> {groupName(each)}
            </button>
          </li>
        ))}
      </ul>
      <p className={styles.told}>
        {told
          ? curveSentence(told)
          : "Marks are measured, strokes join them. Press a name or a mark to see how sure a curve is."}
      </p>
      <p className={styles.told} aria-live="polite">
        {pointed && <strong>{pointSentence(curves, pointed)}</strong>}
      </p>
    </ChartFigure>
  );
}
