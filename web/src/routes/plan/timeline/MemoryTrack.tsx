import { useMemo } from "react";
import { useHatches } from "../../../charts/Hatches";
import type { StepColumns } from "../../../charts/step/columns";
import { bytesAt, memoryCurve } from "../../../charts/step/memoryCurve";
import { pixelOf, type TimeWindow } from "../../../charts/step/window";
import { gibibytes } from "../../../lib/format";
import styles from "./Timeline.module.css";

const HEIGHT = 116;
const TOP = 4;
const BOTTOM = HEIGHT - 1;

interface Props {
  step: StepColumns;
  rank: number;
  window: TimeWindow;
  width: number;
  /** Where the pointer is. */
  time_ns: number | undefined;
}

/** What one rank holds, over the same time as the rows above, beneath the limit. */
export function MemoryTrack({ step, rank, window, width, time_ns }: Props) {
  const memory = step.memory[rank];
  const hatches = useHatches();
  const limit = step.memory_limit_bytes;
  const peak = memory?.peak_bytes ?? 0;
  const y = (bytes: number) => BOTTOM - (BOTTOM - TOP) * (bytes / (Math.max(limit, peak) * 1.06));
  const line = useMemo(
    () => (memory && width > 0 ? memoryCurve(memory, window, width) : []),
    [memory, window, width],
  );
  if (!memory) return null;
  const top = line.map((point) => `${point.x.toFixed(1)},${y(point.bytes).toFixed(1)}`).join(" L");
  const sentence = `Rank ${rank} holds ${gibibytes(memory.resident_bytes)} always and ${gibibytes(peak)} at most, of ${gibibytes(limit)} that may be used.`;
  return (
    <>
      <div className={styles.memoryName}>
        <b>Memory of rank {rank}</b>
        <span>peak {gibibytes(peak)}</span>
        <span>limit {gibibytes(limit)}</span>
      </div>
      <svg className={styles.memory} role="img" aria-label={sentence} width={width} height={HEIGHT}>
        {hatches.defs}
        {line.length > 0 && (
          <>
            <path d={`M0,${y(0)} L${top} L${width},${y(0)} Z`} fill="var(--series-3)" fillOpacity="0.85" />
            <path d={`M0,${y(0)} L${top} L${width},${y(0)} Z`} fill={hatches.fill("rising")} />
            <rect
              y={y(memory.resident_bytes)}
              width={width}
              height={Math.max(0, y(0) - y(memory.resident_bytes))}
              fill="var(--series-1)"
            />
            <path d={`M${top}`} fill="none" stroke="var(--ink)" strokeWidth="1.25" />
          </>
        )}
        <line
          x2={width}
          y1={y(limit)}
          y2={y(limit)}
          stroke="var(--bad)"
          strokeWidth="1.5"
          strokeDasharray="6 3"
        />
        {time_ns !== undefined && (
          <g transform={`translate(${pixelOf(time_ns, window, width)} 0)`}>
            <line y2={HEIGHT} stroke="var(--ink)" strokeOpacity="0.5" />
            <circle cy={y(bytesAt(memory, time_ns))} r="3.5" fill="var(--paper)" stroke="var(--ink)" />
          </g>
        )}
      </svg>
    </>
  );
}
