import { ticks } from "../../../charts/scales";
import type { TimeWindow } from "../../../charts/step/window";
import { secondsMark } from "../../../lib/format";
import styles from "./Timeline.module.css";

const HEIGHT = 24;
const LABEL_PX = 120;
const HALF_LABEL_PX = 40;

/** Time since the step began, as exact as the distance of the ticks needs. */
export function Ruler({ window, width }: { window: TimeWindow; width: number }) {
  const [from_s, to_s] = [window.from_ns / 1e9, window.to_ns / 1e9];
  const marks = ticks(from_s, to_s, Math.max(2, Math.floor(width / LABEL_PX)));
  const between_s = (marks[1] ?? 1) - (marks[0] ?? 0);
  return (
    <svg className={styles.ruler} width={width} height={HEIGHT} aria-hidden="true">
      {marks.map((mark) => {
        const x = ((mark - from_s) / (to_s - from_s)) * width;
        const anchor = x < HALF_LABEL_PX ? "start" : "middle";
        return (
          <g key={mark} transform={`translate(${x} 0)`}>
            <line y1={HEIGHT - 5} y2={HEIGHT} stroke="var(--line-strong)" />
            {x < width - HALF_LABEL_PX && (
              <text y={13} textAnchor={anchor} fill="var(--ink-soft)" fontSize="11.5">
                {secondsMark(mark, between_s)}
              </text>
            )}
          </g>
        );
      })}
    </svg>
  );
}
