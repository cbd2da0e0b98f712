import type { StepColumns } from "../../../charts/step/columns";
import { Button } from "../../../components/Button";
import { count } from "../../../lib/format";
import styles from "./Timeline.module.css";
import { TraceActions } from "./TraceActions";
import type { Selection } from "./useSelection";
import { CLOSER, type Moves } from "./useTimelineKeys";

interface Props {
  planId: string;
  step: StepColumns;
  moves: Moves;
  selection: Selection;
}

/** What keys do, for hands without them. */
export function Toolbar({ planId, step, moves, selection }: Props) {
  const last = step.num_microbatches - 1;
  return (
    <div className={styles.toolbar}>
      <fieldset className={styles.group}>
        <legend className="visually-hidden">Window</legend>
        <Button aria-label="Farther" onClick={() => moves.zoom(1 / CLOSER)}>
          −
        </Button>
        <Button aria-label="Closer" onClick={() => moves.zoom(CLOSER)}>
          +
        </Button>
        <Button onClick={moves.fit}>Fit</Button>
      </fieldset>
      <Button
        aria-pressed={selection.critical}
        className={styles.toggle}
        onClick={() => selection.setCritical(!selection.critical)}
      >
        Critical path
      </Button>
      <fieldset className={styles.group}>
        <legend className="visually-hidden">Highlighted micro-batch</legend>
        <label className={styles.microbatch}>
          Micro-batch
          <input
            type="number"
            min={0}
            max={last}
            placeholder="none"
            value={selection.microbatch < 0 ? "" : selection.microbatch}
            onChange={({ target }) =>
              selection.pinMicrobatch(
                target.value === "" ? -1 : Math.min(last, Math.max(0, Math.round(target.valueAsNumber))),
              )
            }
          />
          <span>of {count(step.num_microbatches)}</span>
        </label>
        {selection.microbatch >= 0 && (
          <Button look="quiet" onClick={() => selection.pinMicrobatch(-1)}>
            Show all
          </Button>
        )}
      </fieldset>
      <TraceActions planId={planId} />
    </div>
  );
}
