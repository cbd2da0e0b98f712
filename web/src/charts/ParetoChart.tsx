import type { PointerEvent } from "react";
import { gibibytes, seconds } from "../lib/format";
import styles from "./ParetoChart.module.css";
import {
  type ChoicePoint,
  nearest,
  PARETO_MARGIN,
  type ParetoMark,
  paretoLayout,
  placeLabels,
  stairs,
} from "./pareto";

export type ChoiceShape = "plan" | "runner-up" | "neighbour";

export interface DrawnChoice extends ChoicePoint {
  readonly shape: ChoiceShape;
  readonly label: string;
}

interface Props {
  choices: readonly DrawnChoice[];
  limit_bytes: number;
  selected: string;
  onSelect: (id: string) => void;
  width: number;
  height: number;
  sentence: string;
}

/** Step time x peak memory: the limit, the front, and every choice; hollow = does not fit. */
export function ParetoChart({ choices, limit_bytes, selected, onSelect, width, height, sentence }: Props) {
  const box = { width, height };
  const { x, y, marks, front, limit } = paretoLayout(choices, limit_bytes, box);
  const end = width - PARETO_MARGIN.right;
  const floor = height - PARETO_MARGIN.bottom;
  const chosen = marks.find((each) => each.point.id === selected);
  // Those that matter most are named first and so find room.
  const rank = ({ point }: ParetoMark<DrawnChoice>) => {
    if (point.id === selected) return 0;
    if (point.shape === "plan") return 1;
    return front.some((each) => each.point === point) ? 2 : 3;
  };
  const named = [...marks].sort((a, b) => rank(a) - rank(b));
  const labels = placeLabels(
    named.map((each) => ({ x: each.x, y: each.y, text: each.point.label, id: each.point.id })),
    marks,
    box,
  );
  const press = (event: PointerEvent<SVGSVGElement>) => {
    const frame = event.currentTarget.getBoundingClientRect();
    const at = { x: event.clientX - frame.left, y: event.clientY - frame.top };
    onSelect(nearest(marks, at)?.point.id ?? "");
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
      {y.ticks(6).map((tick) => (
        <g key={tick} transform={`translate(0 ${y(tick)})`}>
          <line x1={PARETO_MARGIN.left} x2={end} className={styles.grid} />
          <text x={PARETO_MARGIN.left - 8} dy="0.32em" textAnchor="end">
            {gibibytes(tick * 2 ** 30).replace(".0", "")}
          </text>
        </g>
      ))}
      {x.ticks(Math.max(2, Math.floor(width / 130))).map((tick) => (
        <text key={tick} x={x(tick)} y={floor + 17} textAnchor="middle">
          {seconds(tick)}
        </text>
      ))}
      <text x={end} y={height - 6} textAnchor="end" className={styles.axis}>
        step time, estimated: left is faster
      </text>
      <rect
        x={PARETO_MARGIN.left}
        width={end - PARETO_MARGIN.left}
        y={PARETO_MARGIN.top}
        height={Math.max(0, limit - PARETO_MARGIN.top)}
        className={styles.over}
      />
      <line x1={PARETO_MARGIN.left} x2={end} y1={limit} y2={limit} className={styles.limit} />
      <text x={end - 4} y={limit - 5} textAnchor="end" className={styles.limitName}>
        limit {gibibytes(limit_bytes)}
      </text>
      <path d={stairs(front, end)} className={styles.front} />
      {marks.map((mark) => (
        <Mark key={mark.point.id} mark={mark} />
      ))}
      {chosen && <circle cx={chosen.x} cy={chosen.y} r={11} className={styles.ring} />}
      {labels.map((each) => (
        <text
          key={each.id}
          x={each.left}
          y={each.base}
          className={each.id === selected ? styles.chosenName : styles.name}
        >
          {each.text}
        </text>
      ))}
    </svg>
  );
}

function Mark({ mark: { point, x, y, beyond } }: { mark: ParetoMark<DrawnChoice> }) {
  const look = `${styles.mark} ${styles[point.shape]} ${point.fits ? "" : styles.hollow}`;
  if (beyond) return <path d={`M${x} ${y - 7}l6 10h-12z`} className={look} />;
  if (point.shape === "plan") return <path d={`M${x} ${y - 8}l8 8l-8 8l-8-8z`} className={look} />;
  if (point.shape === "runner-up")
    return <rect x={x - 5.5} y={y - 5.5} width={11} height={11} className={look} />;
  return <circle cx={x} cy={y} r={5} className={look} />;
}
