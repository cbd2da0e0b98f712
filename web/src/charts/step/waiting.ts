/**
 * What did an action wait for?  For the one before it on its rank, and for a result: the forward of the chunk before,
 * the gradient of the chunk after, which may have to be sent from another rank.
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
  /** Which of the two came last; undefined = it began at once. */
  readonly held_by: "previous" | "source" | undefined;
}

export function waitingOf(step: StepColumns, place: number): Waiting {
  const rank = rankOf(step, place);
  const previous = place > at(step.offsets, rank) ? place - 1 : undefined;
  const free_ns = previous === undefined ? 0 : at(step.end_ns, previous);
  const source = sourceOf(step, place);
  const transfer = source === undefined ? undefined : transferTo(step, source, rank);
  const idle_ns = at(step.start_ns, place) - free_ns;
  const held_by = idle_ns > 0 ? (source === undefined ? undefined : "source") : previous && "previous";
  return { previous, source, transfer, idle_ns, held_by: held_by || undefined };
}

/** The action whose result it uses: see planner/schedule/dependencies.py. */
export function sourceOf(step: StepColumns, place: number): number | undefined {
  const chunk = at(step.chunk, place);
  const same = sameMicrobatch(step, place);
  const find = (kinds: readonly string[], wanted: number) =>
    same.find((each) => kinds.includes(kindName(step, each)) && at(step.chunk, each) === wanted);
  if (kindName(step, place) === "forward") return find(["forward"], chunk - 1);
  if (kindName(step, place) === "weight gradient") return find(["input gradient"], chunk);
  return find(["backward", "input gradient"], chunk + 1) ?? find(["forward"], chunk);
}

/** The actions that use its result. */
export function usersOf(step: StepColumns, place: number): readonly number[] {
  return sameMicrobatch(step, place).filter((each) => sourceOf(step, each) === place);
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

function sameMicrobatch(step: StepColumns, place: number): readonly number[] {
  return [...placesOfMicrobatch(step, at(step.microbatch, place))];
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
