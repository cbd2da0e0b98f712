import styles from "./ComparedBars.module.css";
import { useHatches } from "./Hatches";
import { type Piece, stackPieces } from "./stack";

export interface Bar {
  readonly name: string;
  readonly pieces: readonly Piece[];
  /** Written at the bar's name. */
  readonly figure: string;
}

interface Props {
  bars: readonly Bar[];
  /** A value that no bar should pass. */
  limit?: number;
  width: number;
  sentence: string;
}

const BAR_PX = 20;
const LABEL_PX = 18;
const ROW_PX = LABEL_PX + BAR_PX + 8;

/** Bars of the same parts under each other, on one scale. */
export function ComparedBars({ bars, limit = 0, width, sentence }: Props) {
  const hatches = useHatches();
  const longest = Math.max(limit * 1.02, ...bars.map(sumOf));
  const height = bars.length * ROW_PX;
  const limitX = Math.min(width - 1, (limit / longest) * width);
  return (
    <svg
      role="img"
      aria-label={sentence}
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      className={styles.bars}
    >
      {hatches.defs}
      {bars.map((bar, row) => (
        <g key={bar.name} transform={`translate(0 ${row * ROW_PX})`}>
          <text y={LABEL_PX - 5}>
            {bar.name} <tspan className={styles.figure}>{bar.figure}</tspan>
          </text>
          {stackPieces(bar.pieces, width, longest).map(({ piece, x, width: length }) => (
            <g key={piece.name}>
              <title>{piece.look.label}</title>
              <rect x={x} y={LABEL_PX} width={length} height={BAR_PX} fill={piece.look.colour} />
              {piece.look.hatch && (
                <rect
                  x={x}
                  y={LABEL_PX}
                  width={length}
                  height={BAR_PX}
                  fill={hatches.fill(piece.look.hatch)}
                />
              )}
            </g>
          ))}
          {limit > 0 && (
            <line
              x1={limitX}
              x2={limitX}
              y1={LABEL_PX - 3}
              y2={LABEL_PX + BAR_PX + 3}
              className={styles.limit}
            />
          )}
        </g>
      ))}
    </svg>
  );
}

export function sumOf(bar: Bar): number {
  return bar.pieces.reduce((sum, each) => sum + each.value, 0);
}
