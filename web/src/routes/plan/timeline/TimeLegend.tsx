import { Legend } from "../../../charts/Legend";
import type { Piece } from "../../../charts/stack";
import { at, type StepColumns } from "../../../charts/step/columns";
import { ACTION_KINDS, AFTER_PIPELINE, lookOf, TIME_TERMS } from "../../../charts/terms";
import { percent, seconds } from "../../../lib/format";
import styles from "./Timeline.module.css";

/** What each colour means, and how much of the time of all ranks it takes. */
export function TimeLegend({ step }: { step: StepColumns }) {
  const all_ns = step.makespan_ns * step.num_ranks;
  const sum = (column: readonly number[]) => column.reduce((total, each) => total + each, 0);
  const kinds = step.kinds.map((kind, index) => ({
    name: kind,
    look: lookOf(ACTION_KINDS, kind),
    value: at(step.before_ns[index] ?? [0], step.kind.length),
  }));
  // Of all ranks, and with waits for what is sent: not the bubble of the step's terms, which is the busiest stage's.
  const look = { ...lookOf(TIME_TERMS, "pp_bubble"), label: "Idle" };
  const idle = { name: "idle", look, value: sum(step.bubble_ns) };
  const other: Piece[] = [];
  if (step.transfers.to_rank.length > 0)
    other.push({ name: "pp_send", look: lookOf(TIME_TERMS, "pp_send"), value: 1 });
  if (step.after_ns > 0) other.push({ name: "after", look: AFTER_PIPELINE, value: step.after_ns });
  const shared = [...kinds.filter((each) => each.value > 0), idle];
  return (
    <div className={styles.legend}>
      <Legend
        pieces={shared}
        figure={(piece) =>
          `${seconds(piece.value / step.num_ranks / 1e9, 3)} a rank, ${percent(piece.value / all_ns)}`
        }
      />
      <Legend
        pieces={other}
        figure={(piece) =>
          piece.name === "after" ? seconds(piece.value / 1e9, 3) : "beneath the rank that sends"
        }
      />
      <p>
        Where actions are thinner than the screen can show, a row shows how its time is shared instead, in the
        order of this list from the bottom.
      </p>
    </div>
  );
}
