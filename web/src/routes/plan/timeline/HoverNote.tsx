import { at, type StepColumns } from "../../../charts/step/columns";
import { bytesAt } from "../../../charts/step/memoryCurve";
import { gibibytes } from "../../../lib/format";
import { actionName, exactly } from "./describe";
import type { Hovered } from "./hovered";
import styles from "./Timeline.module.css";

const WIDTH_PX = 270;

interface Props {
  step: StepColumns;
  hovered: Hovered;
  width: number;
}

/** A note beside the pointer; the panel says the same of a selected action to those without one. */
export function HoverNote({ step, hovered, width }: Props) {
  const { rank, time_ns } = hovered;
  const left = Math.max(0, Math.min(hovered.x + 14, width - WIDTH_PX));
  const memory = step.memory[rank];
  return (
    <div className={styles.note} style={{ left, top: hovered.y + 18 }} aria-hidden="true">
      <b>{titleOf(step, hovered)}</b>
      <span>{times(step, hovered)}</span>
      <span>
        Rank {rank} at {exactly(time_ns)}
        {memory && ` holds ${gibibytes(bytesAt(memory, time_ns))}`}
      </span>
    </div>
  );
}

function titleOf(step: StepColumns, { place, transfer, time_ns }: Hovered): string {
  if (place !== undefined) return actionName(step, place);
  if (transfer !== undefined) {
    const { transfers } = step;
    const what = at(transfers.gradient, transfer) ? "Gradient" : "Activation";
    return `${what} of micro-batch ${at(transfers.microbatch, transfer)} to rank ${at(transfers.to_rank, transfer)}`;
  }
  return time_ns > step.makespan_ns ? "After the pipeline" : "Nothing runs";
}

function times(step: StepColumns, { place, transfer }: Hovered): string | undefined {
  const span = (from_ns: number, to_ns: number) => `${exactly(to_ns - from_ns)} from ${exactly(from_ns)}`;
  if (place !== undefined) return span(at(step.start_ns, place), at(step.end_ns, place));
  if (transfer === undefined) return undefined;
  return span(at(step.transfers.start_ns, transfer), at(step.transfers.end_ns, transfer));
}
