import { at, type StepColumns } from "../../../charts/step/columns";
import type { Rows } from "../../../charts/step/rows";
import { percent, seconds } from "../../../lib/format";
import styles from "./Timeline.module.css";
import type { Selection } from "./useSelection";

interface Props {
  step: StepColumns;
  rows: Rows;
  selection: Selection;
}

const TWO_LINES_PX = 36;

/** The ranks with their bubbles; a press shows the memory of one beneath. */
export function RankGutter({ step, rows, selection }: Props) {
  return (
    <ol className={styles.ranks} aria-label="Pipeline ranks">
      {Array.from({ length: step.num_ranks }, (_, rank) => {
        const idle_ns = at(step.bubble_ns, rank);
        const share = percent(step.makespan_ns > 0 ? idle_ns / step.makespan_ns : 0);
        const length = seconds(idle_ns / 1e9, 3);
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: the index is the rank
          <li key={rank} style={{ height: rows.row_px }}>
            <button
              type="button"
              aria-pressed={rank === selection.rank}
              aria-label={`Rank ${rank}: idle for ${length}, ${share}`}
              onClick={() => selection.selectRank(rank)}
            >
              <b>{rank}</b>
              <span>{share}</span>
              {rows.row_px >= TWO_LINES_PX && <small>{length}</small>}
            </button>
          </li>
        );
      })}
    </ol>
  );
}
