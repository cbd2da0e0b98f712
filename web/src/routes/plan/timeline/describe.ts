/** What do the timeline and its actions say in words? */

import { at, rankOf, type StepColumns } from "../../../charts/step/columns";
import { kindName, type Waiting } from "../../../charts/step/waiting";
import { ACTION_KINDS, lookOf } from "../../../charts/terms";
import { milliseconds, percent, plural, seconds } from "../../../lib/format";

const s = (ns: number) => ns / 1e9;

/** What the whole chart shows. */
export function stepSentence(step: StepColumns): string {
  const length = seconds(s(step.makespan_ns));
  const after =
    step.after_ns > 0 ? ` ${seconds(s(step.after_ns))} follow for the optimizer and the rest.` : "";
  if (step.num_ranks === 1)
    return `One pipeline rank computes for ${length}; there is no pipeline and no bubble.${after}`;
  const worst = step.bubble_ns.indexOf(Math.max(...step.bubble_ns));
  const idle = at(step.bubble_ns, worst);
  return `The pipeline of one step takes ${length} on ${plural(step.num_ranks, "rank")}. They are idle for ${percent(step.bubble_fraction)} of all device time, most on rank ${worst}: ${seconds(s(idle))} (${percent(idle / step.makespan_ns)}).${after}`;
}

/** "Forward of micro-batch 3, chunk 1". */
export function actionName(step: StepColumns, place: number): string {
  return `${lookOf(ACTION_KINDS, kindName(step, place)).label} of micro-batch ${at(step.microbatch, place)}, chunk ${at(step.chunk, place)}`;
}

/** Microseconds after the point: exact to the nanosecond that the API gives, without a wall of digits. */
export function exactly(ns: number): string {
  return milliseconds(s(ns));
}

/** Read aloud when an action is selected. */
export function actionSentence(step: StepColumns, place: number, waiting: Waiting): string {
  const [start, end] = [at(step.start_ns, place), at(step.end_ns, place)];
  return `${actionName(step, place)}, on rank ${rankOf(step, place)}, from ${exactly(start)} to ${exactly(end)}. ${waitingSentence(step, waiting)}`;
}

/** Why it did not begin earlier. */
export function waitingSentence(step: StepColumns, waiting: Waiting): string {
  const { source, previous } = waiting;
  if (waiting.held_by === "result" && source !== undefined) {
    const sent =
      waiting.transfer === undefined
        ? ""
        : `, sent until ${exactly(at(step.transfers.end_ns, waiting.transfer))}`;
    return `The rank was idle for ${exactly(waiting.idle_ns)}, until the result of ${inner(actionName(step, source))} on rank ${rankOf(step, source)} came${sent}.`;
  }
  if (waiting.held_by === "own rank" && previous !== undefined && waiting.idle_ns <= 0)
    return `It began as soon as the rank had ended ${inner(actionName(step, previous))}.`;
  if (waiting.idle_ns > 0) return `The rank was idle for ${exactly(waiting.idle_ns)} before it.`;
  return "It waited for nothing.";
}

const inner = (name: string) => name.charAt(0).toLowerCase() + name.slice(1);
