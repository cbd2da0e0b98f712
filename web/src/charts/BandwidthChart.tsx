import type { KeyboardEvent, PointerEvent } from "react";
import { bandwidth, bytes } from "../lib/format";
import styles from "./BandwidthChart.module.css";
import {
  BANDWIDTH_MARGIN,
  type BandwidthCurve,
  type BandwidthScales,
  bandwidthPath,
  bandwidthScales,
  byteTicks,
  intervalPath,
  type PointPlace,
  walked,
} from "./bandwidth";
import { nearest } from "./pareto";
import { Marker, seriesLook } from "./series";

interface Props {
  curves: readonly BandwidthCurve[];
  /** Id of the curve that stands out, with its interval. */
  chosen: string;
  onChoose: (id: string) => void;
  /** The point that is told. */
  pointed: PointPlace | undefined;
  onPoint: (place: PointPlace | undefined) => void;
  width: number;
  height: number;
  sentence: string;
  /** What the keys do, for those who do not see it. */
  label: string;
}

const TICK_PX = 72;
const MARK = 0.65;

/** Bus bandwidth over message size: a line and marks a curve; arrows walk over the points. */
export function BandwidthChart(props: Props) {
  const { curves, chosen, onChoose, pointed, onPoint, width, height } = props;
  const scales = bandwidthScales(curves, width, height);
  const marks = curves.flatMap((each, curve) =>
    each.points.map((point, place) => ({ curve, point: place, ...at(point, scales) })),
  );
  const under = (event: PointerEvent<HTMLElement>) => {
    const frame = event.currentTarget.getBoundingClientRect();
    return nearest(marks, { x: event.clientX - frame.left, y: event.clientY - frame.top });
  };
  const press = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const next = walked(curves, pointed, event.key);
    if (!next) return;
    event.preventDefault();
    onPoint(next);
  };
  const ring = marks.find((each) => each.curve === pointed?.curve && each.point === pointed.point);
  // The chosen one is drawn last, above the others.
  const drawn = curves
    .map((_, place) => place)
    .sort((a, b) => Number(curves[a]?.id === chosen) - Number(curves[b]?.id === chosen));
  return (
    <div
      role="application"
      aria-roledescription="chart"
      aria-label={props.label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a widget of its own, whose keys its label names
      tabIndex={0}
      className={styles.chart}
      onKeyDown={press}
      onBlur={() => onPoint(undefined)}
      onPointerMove={(event) => onPoint(under(event))}
      // A finger leaves when it is lifted; what it has touched stays told.
      onPointerLeave={(event) => event.pointerType === "mouse" && onPoint(undefined)}
      onPointerUp={(event) => {
        const found = under(event);
        onPoint(found);
        onChoose(curves[found?.curve ?? -1]?.id ?? "");
      }}
    >
      <svg role="img" aria-label={props.sentence} width={width} height={height}>
        <Frame scales={scales} width={width} height={height} />
        {drawn.map((place) => {
          const curve = curves[place];
          return (
            curve && (
              <Curve
                key={curve.id}
                curve={curve}
                series={place}
                scales={scales}
                chosen={curve.id === chosen}
              />
            )
          );
        })}
        {ring && <circle cx={ring.x} cy={ring.y} r="8" className={styles.ring} />}
      </svg>
    </div>
  );
}

const at = (point: BandwidthCurve["points"][number], { x, y }: BandwidthScales) => ({
  x: x(Math.max(1, point.bytes)),
  y: y(point.bandwidth_bytes_per_s),
});

interface CurveProps {
  curve: BandwidthCurve;
  series: number;
  scales: BandwidthScales;
  chosen: boolean;
}

function Curve({ curve, series, scales, chosen }: CurveProps) {
  const { colour, dash } = seriesLook(series);
  return (
    <g data-curve={curve.id} data-chosen={chosen}>
      {chosen && <path d={intervalPath(curve, scales)} fill={colour} className={styles.interval} />}
      <path
        d={bandwidthPath(curve, scales)}
        fill="none"
        stroke={colour}
        strokeWidth={chosen ? 3 : 1.5}
        strokeDasharray={dash}
      />
      {curve.points.map((point) => (
        <Marker key={point.bytes} series={series} {...at(point, scales)} scale={chosen ? 0.85 : MARK} />
      ))}
    </g>
  );
}

function Frame({
  scales: { x, y },
  width,
  height,
}: Pick<CurveProps, "scales"> & { width: number; height: number }) {
  const [left, right] = [BANDWIDTH_MARGIN.left, width - BANDWIDTH_MARGIN.right];
  const floor = height - BANDWIDTH_MARGIN.bottom;
  return (
    <>
      {y.ticks(5).map((tick) => (
        <g key={tick} transform={`translate(0 ${y(tick)})`}>
          <line x1={left} x2={right} className={tick === 0 ? styles.floor : styles.grid} />
          <text x={left - 8} dy="0.32em" textAnchor="end">
            {bandwidth(tick, 2)}
          </text>
        </g>
      ))}
      {byteTicks(x.domain(), Math.max(2, Math.floor((right - left) / TICK_PX))).map((tick) => (
        <text key={tick} x={x(tick)} y={floor + 17} textAnchor="middle">
          {bytes(tick, 1)}
        </text>
      ))}
      <text x={right} y={height - 6} textAnchor="end">
        message size
      </text>
    </>
  );
}
