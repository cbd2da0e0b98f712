import { scaleLinear } from "d3-scale";
import type { TimeWindow } from "../../../charts/step/window";
import { secondsMark } from "../../../lib/format";
import styles from "./Timeline.module.css";

const HEIGHT = 24;
const LABEL_PX = 120;
const HALF_LABEL_PX = 40;

/** Time since the step began, as exact as the distance of the ticks needs. */
export function Ruler({ window, width }: { window: TimeWindow; width: number }) {
  const scale = scaleLinear([window.from_ns / 1e9, window.to_ns / 1e9], [0, width]);
  const ticks = scale.ticks(Math.max(2, Math.floor(width / LABEL_PX)));
  const between_s = (ticks[1] ?? 1) - (ticks[0] ?? 0);
  return (
    <svg className={styles.ruler} width={width} height={HEIGHT} aria-hidden="true">
      {ticks.map((tick) => {
        const x = scale(tick);
        const anchor = x < HALF_LABEL_PX ? "start" : "middle";
        return (
          <g key={tick} transform={`translate(${x} 0)`}>
            <line y1={HEIGHT - 5} y2={HEIGHT} stroke="var(--line-strong)" />
            {x < width - HALF_LABEL_PX && (
              <text y={13} textAnchor={anchor} fill="var(--ink-soft)" fontSize="11.5">
                {secondsMark(tick, between_s)}
              </text>
            )}
          </g>
        );
      })}
    </svg>
  );
}
