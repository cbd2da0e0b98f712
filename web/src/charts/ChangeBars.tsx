import { type Change, changeBars } from "./changeBars";
import { useHatches } from "./Hatches";
import type { Look } from "./terms";

interface Props {
  changes: readonly Change[];
  look: (name: string) => Look;
  figure: (value: number) => string;
  width: number;
  sentence: string;
}

const ROW_PX = 26;
const FIGURE_PX = 84;

/** What each part pays (right) or saves (left). */
export function ChangeBars({ changes, look, figure, width, sentence }: Props) {
  const hatches = useHatches();
  const names_px = Math.min(160, width * 0.36);
  const { bars, zero } = changeBars(changes, names_px + 8, width - FIGURE_PX);
  const height = bars.length * ROW_PX + 4;
  return (
    <svg role="img" aria-label={sentence} width={width} height={height} fontSize="12">
      {hatches.defs}
      <line x1={zero} x2={zero} y1={0} y2={height} stroke="var(--line-strong)" />
      {bars.map((bar, index) => {
        const { label, colour, hatch } = look(bar.name);
        const box = { x: bar.x, y: 5, width: bar.width, height: ROW_PX - 8 };
        return (
          <g key={bar.name} transform={`translate(0 ${index * ROW_PX})`}>
            <text x={0} y={ROW_PX / 2 + 4} fill="var(--ink-soft)">
              {label}
            </text>
            <rect {...box} fill={colour} />
            {hatch && <rect {...box} fill={hatches.fill(hatch)} />}
            <text x={width} y={ROW_PX / 2 + 4} textAnchor="end" fill="var(--ink)" fontWeight="500">
              {figure(bar.value)}
            </text>
          </g>
        );
      })}
    </svg>
  );
}
