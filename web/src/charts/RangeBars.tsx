import { bytes } from "../lib/format";
import { byteTicks, rangeScale, type SizeRange } from "./ranges";

export interface NamedRange extends SizeRange {
  readonly name: string;
  /** What stands at the end of the bar. */
  readonly figure: string;
  /** Between devices of several nodes: a thinner bar. */
  readonly wide: boolean;
}

interface Props {
  ranges: readonly NamedRange[];
  width: number;
  sentence: string;
}

const ROW_PX = 26;
const FIGURE_PX = 92;

/** The sizes that each curve covers. */
export function RangeBars({ ranges, width, sentence }: Props) {
  const names_px = Math.min(190, width * 0.4);
  const scale = rangeScale(ranges, names_px + 8, width - FIGURE_PX);
  const floor = ranges.length * ROW_PX;
  return (
    <svg role="img" aria-label={sentence} width={width} height={floor + 24} fontSize="12">
      {byteTicks(scale.domain(), Math.max(2, Math.floor((width - names_px - FIGURE_PX) / 70))).map((tick) => (
        <g key={tick}>
          <line x1={scale(tick)} x2={scale(tick)} y1={0} y2={floor} stroke="var(--line)" />
          <text x={scale(tick)} y={floor + 16} textAnchor="middle" fill="var(--ink-soft)">
            {bytes(tick, 1)}
          </text>
        </g>
      ))}
      {ranges.map((each, index) => (
        <g key={each.id} transform={`translate(0 ${index * ROW_PX})`}>
          <text y={ROW_PX / 2 + 4} fill="var(--ink-soft)">
            {each.name}
          </text>
          <rect
            x={scale(Math.max(1, each.smallest_bytes))}
            width={Math.max(3, scale(each.largest_bytes) - scale(Math.max(1, each.smallest_bytes)))}
            y={each.wide ? 9 : 7}
            height={each.wide ? ROW_PX - 18 : ROW_PX - 14}
            rx="2"
            fill={each.wide ? "var(--series-5)" : "var(--series-3)"}
          />
          <text x={width} y={ROW_PX / 2 + 4} textAnchor="end" fill="var(--ink)">
            {each.figure}
          </text>
        </g>
      ))}
    </svg>
  );
}
