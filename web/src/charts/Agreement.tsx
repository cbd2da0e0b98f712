import { memo, type PointerEvent } from "react";
import { count } from "../lib/format";
import styles from "./Agreement.module.css";
import {
  type AgreementScales,
  AREA_PX2,
  bandPath,
  MARGIN,
  marksPath,
  nearest,
  OTHER,
  type Pair,
  type SeriesLook,
} from "./agreement";
import { logTicks } from "./logTicks";
import type { Box } from "./steps";

/** Room that a tick with its label needs, from top to bottom and from left to right. */
const [TICK_PX, WIDE_TICK_PX] = [60, 80];

interface Props {
  pairs: readonly Pair[];
  looks: readonly SeriesLook[];
  scales: AgreementScales;
  box: Box;
  sentence: string;
  /** "step time", "peak memory". */
  quantity: string;
  tickLabel: (value: number) => string;
  /** What one is in the unit of the labels. */
  unit: number;
  ringed: Pair | undefined;
  onHover: (pair: Pair | undefined) => void;
  onSelect: (pair: Pair | undefined) => void;
}

/** Predicted over measured, with the diagonal and the bands of 10 and 25 %. */
export function Agreement(props: Props) {
  const { pairs, scales, box, sentence, ringed, onHover, onSelect } = props;
  const at = (event: PointerEvent<SVGSVGElement>) => {
    const frame = event.currentTarget.getBoundingClientRect();
    return nearest(pairs, scales, [event.clientX - frame.left, event.clientY - frame.top]);
  };
  return (
    <svg
      role="img"
      aria-label={sentence}
      className={styles.chart}
      width={box.width}
      height={box.height}
      onPointerMove={(event) => onHover(at(event))}
      onPointerLeave={() => onHover(undefined)}
      onPointerUp={(event) => onSelect(at(event))}
    >
      <Frame {...props} />
      <Marks pairs={pairs} looks={props.looks} scales={scales} />
      {ringed && (
        <circle
          className={styles.ring}
          cx={scales.x(ringed.measured)}
          cy={scales.y(ringed.predicted)}
          r="8"
          data-run={ringed.id}
        />
      )}
    </svg>
  );
}

function Frame({ scales, box, quantity, tickLabel, unit }: Props) {
  const { x, y } = scales;
  const domain = x.domain();
  const [left, right] = [MARGIN.left, box.width - MARGIN.right];
  const bottom = box.height - MARGIN.bottom;
  return (
    <>
      <svg x={left} y={MARGIN.top} width={right - left} height={bottom - MARGIN.top} aria-hidden="true">
        <g transform={`translate(${-left} ${-MARGIN.top})`}>
          <path className={styles.wide} d={bandPath(scales, 0.25)} />
          <path className={styles.narrow} d={bandPath(scales, 0.1)} />
          <line
            className={styles.equal}
            x1={x(domain[0])}
            y1={y(domain[0])}
            x2={x(domain[1])}
            y2={y(domain[1])}
          />
        </g>
      </svg>
      <g className={styles.ticks}>
        {logTicks(domain, (bottom - MARGIN.top) / TICK_PX, unit).map((tick) => (
          <g key={tick} transform={`translate(0 ${y(tick)})`}>
            <line x1={left} x2={right} />
            <text x={left - 8} dy="0.32em" textAnchor="end">
              {tickLabel(tick)}
            </text>
          </g>
        ))}
        {logTicks(domain, (right - left) / WIDE_TICK_PX, unit).map((tick) => (
          <g key={tick} transform={`translate(${x(tick)} 0)`}>
            <line y1={MARGIN.top} y2={bottom} />
            <text y={bottom + 16} textAnchor="middle">
              {tickLabel(tick)}
            </text>
          </g>
        ))}
        <text x={right} y={box.height - 6} textAnchor="end" className={styles.axis}>
          measured {quantity} →
        </text>
        <text x={left + 8} y={MARGIN.top + 14} className={styles.axis}>
          ↑ predicted {quantity}
        </text>
      </g>
    </>
  );
}

/** Not drawn again when only the ring moves. */
const Marks = memo(function Marks({ pairs, looks, scales }: Pick<Props, "pairs" | "looks" | "scales">) {
  const named = new Set(looks.map((each) => each.name));
  return looks.toReversed().map((look) => (
    <path
      key={look.name}
      className={styles.marks}
      fill={look.colour}
      d={marksPath(
        pairs.filter((pair) => (named.has(pair.series) ? pair.series : OTHER) === look.name),
        look.shape,
        scales,
      )}
    />
  ));
});

/** Which colour and shape is whose. */
export function AgreementLegend({ looks }: { looks: readonly SeriesLook[] }) {
  return (
    <ul className={styles.legend}>
      {looks.map((look) => (
        <li key={look.name}>
          <svg width="14" height="14" viewBox="-7 -7 14 14" aria-hidden="true">
            <path d={look.shape(AREA_PX2 * 1.4)} fill={look.colour} />
          </svg>
          <span>
            {look.name} ({count(look.n)})
          </span>
        </li>
      ))}
    </ul>
  );
}
