/**
 * What did an action wait for?  The API says which result it uses, and what came last before it; here that is looked up
 * from both ends, with the transfer that brought the result.
 */

import { at, rankOf, type StepColumns } from "./columns";

export interface Waiting {
  /** The action before it on the same rank. */
  readonly previous: number | undefined;
  /** The action whose result it uses. */
  readonly source: number | undefined;
  /** The transfer that brought the result, as a place of the transfers. */
  readonly transfer: number | undefined;
  /** Idle time of the rank just before. */
  readonly idle_ns: number;
  /** Which of the two came last: a word of the step's `holders`. */
  readonly held_by: string;
}

export function waitingOf(step: StepColumns, place: number): Waiting {
  const rank = rankOf(step, place);
  const previous = place > at(step.offsets, rank) ? place - 1 : undefined;
  const source = sourceOf(step, place);
  return {
    previous,
    source,
    transfer: source === undefined ? undefined : transferTo(step, source, rank),
    idle_ns: at(step.start_ns, place) - (previous === undefined ? 0 : at(step.end_ns, previous)),
    held_by: step.holders[at(step.held_by, place)] ?? "",
  };
}

/** The action whose result it uses. */
export function sourceOf(step: StepColumns, place: number): number | undefined {
  const source = at(step.uses, place);
  return source < 0 ? undefined : source;
}

/** The actions that use its result: all are of its micro-batch. */
export function usersOf(step: StepColumns, place: number): readonly number[] {
  const same = placesOfMicrobatch(step, at(step.microbatch, place));
  return [...same].filter((each) => at(step.uses, each) === place);
}

export function kindName(step: StepColumns, place: number): string {
  return step.kinds[at(step.kind, place)] ?? "";
}

export function placesOfMicrobatch(step: StepColumns, microbatch: number): Int32Array {
  if (microbatch < 0 || microbatch >= step.num_microbatches) return new Int32Array();
  return step.of_microbatch.subarray(
    at(step.microbatch_offsets, microbatch),
    at(step.microbatch_offsets, microbatch + 1),
  );
}

function transferTo(step: StepColumns, source: number, to_rank: number): number | undefined {
  const { transfers } = step;
  const from = rankOf(step, source);
  const end = at(transfers.offsets, from + 1);
  for (let each = at(transfers.offsets, from); each < end; each++) {
    if (at(transfers.start_ns, each) < at(step.end_ns, source)) continue;
    if (at(transfers.start_ns, each) > at(step.end_ns, source)) return undefined;
    if (
      at(transfers.to_rank, each) === to_rank &&
      at(transfers.microbatch, each) === at(step.microbatch, source)
    )
      return each;
  }
  return undefined;
}
