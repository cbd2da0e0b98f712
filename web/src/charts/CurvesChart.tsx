import type { PointerEvent } from "react";
import { count } from "../lib/format";
import styles from "./CurvesChart.module.css";
import {
  CURVES_MARGIN,
  type Curve,
  type CurvePoint,
  curvePath,
  curveScales,
  idealPath,
  STRIP_PX,
} from "./curves";
import { logTicks } from "./logTicks";
import { nearest } from "./pareto";
import { ticks } from "./scales";
import { Marker, seriesLook } from "./series";

interface Props {
  curves: readonly Curve[];
  logarithmic: boolean;
  /** Draw what it would be if each device added as much as the first ones. */
  ideal?: boolean;
  figure: (value: number) => string;
  selected: string;
  onSelect: (id: string) => void;
  width: number;
  height: number;
  sentence: string;
}

/** A quantity over devices, one line for each series; each has its own colour, dash and mark. */
export function CurvesChart(props: Props) {
  const { curves, logarithmic, ideal, figure, selected, onSelect, width, height, sentence } = props;
  const scales = curveScales(curves, logarithmic, { width, height });
  const { x, y, floor } = scales;
  const strip = floor + STRIP_PX - 2;
  const at = (point: CurvePoint) => ({ x: x(point.x), y: point.y === null ? strip : y(point.y) });
  const marks = curves.flatMap((curve, series) =>
    curve.points.map((point) => ({ point, series, ...at(point) })),
  );
  const chosen = marks.find((each) => each.point.id === selected);
  const [low, high] = y.domain();
  const lines = logarithmic ? logTicks([low, high], 6) : ticks(low, high, 5);
  const counts = [...new Set(marks.map((each) => each.point.x))];
  const press = (event: PointerEvent<SVGSVGElement>) => {
    const frame = event.currentTarget.getBoundingClientRect();
    const found = nearest(marks, { x: event.clientX - frame.left, y: event.clientY - frame.top });
    onSelect(found?.point.id ?? "");
  };
  return (
    <svg
      role="img"
      aria-label={sentence}
      className={styles.chart}
      width={width}
      height={height}
      onPointerDown={press}
    >
      {lines.map((tick) => (
        <g key={tick} transform={`translate(0 ${y(tick)})`}>
          <line x1={CURVES_MARGIN.left} x2={width - CURVES_MARGIN.right} className={styles.grid} />
          <text x={CURVES_MARGIN.left - 8} dy="0.32em" textAnchor="end">
            {figure(tick)}
          </text>
        </g>
      ))}
      <line
        x1={CURVES_MARGIN.left}
        x2={width - CURVES_MARGIN.right}
        y1={floor + STRIP_PX + 6}
        y2={floor + STRIP_PX + 6}
        className={styles.floor}
      />
      {roomy(counts, x).map((devices) => (
        <text key={devices} x={x(devices)} y={height - 22} textAnchor="middle">
          {count(devices)}
        </text>
      ))}
      <text x={width - CURVES_MARGIN.right} y={height - 4} textAnchor="end">
        devices
      </text>
      {chosen && (
        <line x1={chosen.x} x2={chosen.x} y1={CURVES_MARGIN.top} y2={strip} className={styles.cross} />
      )}
      {curves.map((curve, series) => (
        <g key={curve.name}>
          {ideal && (
            <path
              d={idealPath(curve.points, scales)}
              className={styles.ideal}
              stroke={seriesLook(series).colour}
            />
          )}
          <path
            d={curvePath(curve.points, scales)}
            fill="none"
            stroke={seriesLook(series).colour}
            strokeWidth="2"
            strokeDasharray={seriesLook(series).dash}
          />
        </g>
      ))}
      {marks.map(({ point, series, ...place }) =>
        point.mark ? (
          <text key={point.id} {...place} dy="0.35em" textAnchor="middle" className={styles.none}>
            {point.mark === "undecided" ? "?" : "\u00d7"}
          </text>
        ) : (
          point.y !== null && <Marker key={point.id} series={series} {...place} hollow={!point.sure} />
        ),
      )}
      {chosen && <circle cx={chosen.x} cy={chosen.y} r="10" className={styles.ring} />}
    </svg>
  );
}

/** Those counts whose names do not run into each other. */
function roomy(counts: readonly number[], x: (count: number) => number): readonly number[] {
  let last = Number.NEGATIVE_INFINITY;
  return [...counts]
    .sort((a, b) => a - b)
    .filter((count) => {
      if (x(count) - last < 34) return false;
      last = x(count);
      return true;
    });
}
