/** What does each change of a comparison do by itself?  Read from plan a's ledger of single moves. */

import type { Schemas } from "../../api/client";
import type { PlanDiff } from "../../api/queries/variants";
import { plainMove } from "../../lib/relief";

export interface Alone {
  /** Against plan a; positive = takes more. */
  readonly seconds: number;
  readonly bytes: number;
}

type Changes = Pick<PlanDiff, "strategy" | "step_time_s" | "peak_memory_bytes">;

const STILL_THE_QUESTION = ["/constraints/pins", "/constraints/backends"];

/** Whether seconds of both sides answer the same question, but for what one of them holds fast or which back-ends it asks. */
export function comparable(diff: Pick<PlanDiff, "same_problem" | "problem">): boolean {
  const still = (field: string) => STILL_THE_QUESTION.some((part) => field.startsWith(part));
  return diff.same_problem || diff.problem.every((each) => still(each.field));
}

/** Field -> what it does alone, for changes that are one move of the ledger. */
export function aloneOf(diff: Changes, ledger: readonly Schemas["Neighbour"][]): ReadonlyMap<string, Alone> {
  const found = new Map<string, Alone>();
  const total = diff.peak_memory_bytes.find((each) => each.term === "total")?.a ?? Number.NaN;
  for (const each of diff.strategy) {
    const move = ledger.find((known) => plainMove(known.move) === `${each.field} ${each.a} -> ${each.b}`);
    if (move?.step_time_s != null && move.peak_memory_bytes != null)
      found.set(each.field, {
        seconds: move.step_time_s - diff.step_time_s.a,
        bytes: move.peak_memory_bytes - total,
      });
  }
  return found;
}
