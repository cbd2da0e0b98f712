/**
 * Which layers of a plan recompute or offload, in the words of a question?  A plan's strategy names the policy alone;
 * a search took as few layers as memory demands unless a pin said otherwise, so a question about the plan says so too.
 */

import type { PlanAnswer } from "../api/queries/plans";

const WHERE_NEEDED = "where-needed";
export const RECOMPUTE_WORDS = [
  "none",
  "selective",
  "full",
  `selective-${WHERE_NEEDED}`,
  `full-${WHERE_NEEDED}`,
] as const;
export const OFFLOAD_WORDS = ["false", "true", WHERE_NEEDED] as const;

type Value = string | number | boolean;
export type ReliefField = "recompute" | "activation_offload";
export const RELIEF_FIELDS: readonly ReliefField[] = ["recompute", "activation_offload"];

/** `full` as `full-where-needed`; what a pin of the plan's question says instead; other values as they are. */
export function reliefWord(plan: Pick<PlanAnswer, "problem">, name: ReliefField, value: Value): Value {
  const pinned = plan.problem?.constraints?.pins?.[name];
  if (pinned !== undefined) return pinned;
  if (name === "activation_offload") return value === true ? WHERE_NEEDED : value;
  return value === "none" ? value : `${value}-${WHERE_NEEDED}`;
}

/** A move of the ledger with policies alone, as a comparison of two plans writes it. */
export function plainMove(move: string): string {
  return move.replace(`-> ${WHERE_NEEDED}`, "-> true").replace(`-${WHERE_NEEDED}`, "");
}
