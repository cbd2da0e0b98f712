import { change } from "../../lib/format";
import {
  AXIS_PX,
  NAME_PX,
  ROW_PX,
  spread,
  type TornadoPoint,
  type TornadoRow,
  tornadoLayout,
} from "./layout";
import styles from "./Tornado.module.css";

interface Props {
  rows: readonly TornadoRow[];
  width: number;
  sentence: string;
  /** The lever that is looked at. */
  chosen: string;
}

const NAMES_PX = 168;
const NARROW_PX = 560;
const BAR_PX = 16;
const NEAREST_PX = 15;

/** A tornado: what each lever does to the time a token, and what becomes of the plan at each change. */
export function Tornado({ rows, width, sentence, chosen }: Props) {
  const names = width < NARROW_PX ? 0 : NAMES_PX;
  const { x, ticks, height, rowHeight, rows: placed } = tornadoLayout(rows, { width, names });
  return (
    <svg
      role="img"
      aria-label={sentence}
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      className={styles.tornado}
    >
      {ticks.map((tick) => (
        <g key={tick}>
          <line
            x1={x(tick)}
            x2={x(tick)}
            y1={AXIS_PX - 4}
            y2={height}
            className={tick === 0 ? styles.zero : styles.grid}
          />
          <text x={x(tick)} y={12} textAnchor="middle">
            {change(tick, Math.abs(ticks[1] ?? 1 - (ticks[0] ?? 0)) < 0.01 ? 1 : 0)}
          </text>
        </g>
      ))}
      {placed.map(({ row, y, bars }) => (
        <g key={row.name}>
          {row.name === chosen && (
            <rect
              x={0}
              y={y - (rowHeight - ROW_PX)}
              width={width}
              height={rowHeight}
              className={styles.chosen}
              rx={4}
            />
          )}
          <text x={names === 0 ? 0 : 4} y={names === 0 ? y - NAME_PX + 14 : y + 16} className={styles.name}>
            {row.name.replaceAll("_", " ")}
          </text>
          {bars.map((bar) => (
            <rect
              key={bar.kind}
              x={bar.from}
              y={y + 4}
              width={Math.max(1, bar.to - bar.from)}
              height={BAR_PX}
              className={styles[bar.kind]}
            />
          ))}
          {row.lowest < -5e-5 && <End x={x(row.lowest) - 5} y={y + 16} anchor="end" value={row.lowest} />}
          {row.highest > 5e-5 && <End x={x(row.highest) + 5} y={y + 16} anchor="start" value={row.highest} />}
          <Points points={row.points} x={x} y={y + 31} />
        </g>
      ))}
    </svg>
  );
}

function End({ x, y, anchor, value }: { x: number; y: number; anchor: "start" | "end"; value: number }) {
  return (
    <text x={x} y={y} textAnchor={anchor} className={styles.end}>
      {change(value, Math.abs(value) < 0.001 ? 2 : 1)}
    </text>
  );
}

interface PointsProps {
  points: readonly TornadoPoint[];
  x: (effect: number) => number;
  y: number;
}

/** One mark a change, by shape: a dot stays best, a flag flips, a cross does not fit, a ring was not asked. */
function Points({ points, x, y }: PointsProps) {
  const known = points.filter((each): each is TornadoPoint & { effect: number } => each.effect !== undefined);
  const xs = spread(
    known.map((each) => x(each.effect)),
    NEAREST_PX,
  );
  return known.map((point, index) => (
    <g key={point.change} transform={`translate(${xs[index]} ${y})`}>
      <title>{`${change(point.change, 0)}: ${change(point.effect, 2)} time a token`}</title>
      <Mark verdict={point.verdict} />
    </g>
  ));
}

export function Mark({ verdict }: { verdict: TornadoPoint["verdict"] }) {
  if (verdict === "flips") return <path d="M-3 6V-6L5 -2.5L-3 1" className={styles.flips} />;
  if (verdict === "unfit") return <path d="M-4-4 4 4M4-4-4 4" className={styles.unfit} />;
  return (
    <circle
      r={verdict === "stays" ? 3.5 : 3}
      className={verdict === "stays" ? styles.stays : styles.unasked}
    />
  );
}
