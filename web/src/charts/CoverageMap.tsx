import styles from "./CoverageMap.module.css";
import { COVERAGE_ROW_PX, type CoverageRow, coverageLayout, coverageStep } from "./coverage";
import { useHatches } from "./Hatches";

interface Props {
  rows: readonly CoverageRow[];
  /** What the columns are: 2^octave of it. */
  octaveName: (octave: number) => string;
  width: number;
  sentence: string;
}

/** Measured points of each table by size: number and strength in each cell, hatched where nothing is measured. */
export function CoverageMap({ rows, octaveName, width, sentence }: Props) {
  const hatches = useHatches();
  const names_px = Math.min(170, width * 0.34);
  const { cells, cell_px, first, columns, height } = coverageLayout(rows, width, names_px);
  const every = Math.max(1, Math.ceil(44 / Math.max(1, cell_px)));
  const foot = rows.length * COVERAGE_ROW_PX + 16;
  return (
    <svg role="img" aria-label={sentence} width={width} height={height} className={styles.map}>
      {hatches.defs}
      {rows.map((row, index) => (
        <text key={row.name} x={0} y={index * COVERAGE_ROW_PX + COVERAGE_ROW_PX / 2 + 4}>
          {row.name}
        </text>
      ))}
      {cells.map((cell) => {
        const step = coverageStep(cell.share);
        const box = {
          x: cell.x,
          y: cell.y + 1,
          width: Math.max(1, cell_px - 2),
          height: COVERAGE_ROW_PX - 2,
        };
        return (
          <g key={`${cell.y} ${cell.octave}`}>
            <rect {...box} rx="2" className={`${styles.cell} ${styles[`step${step}`]}`} />
            {step === 0 && <rect {...box} rx="2" fill={hatches.fill("rising")} />}
            {cell_px >= 20 && (
              <text
                x={cell.x + cell_px / 2 - 1}
                y={cell.y + COVERAGE_ROW_PX / 2 + 4}
                textAnchor="middle"
                className={step === 3 ? styles.onFull : styles.number}
              >
                {cell.measured}
              </text>
            )}
          </g>
        );
      })}
      {Array.from({ length: columns }, (_, column) => first + column)
        .filter((_, column) => column % every === 0)
        .map((octave) => (
          <text
            key={octave}
            x={names_px + (octave - first) * cell_px + cell_px / 2}
            y={foot}
            textAnchor="middle"
          >
            {octaveName(octave)}
          </text>
        ))}
    </svg>
  );
}
