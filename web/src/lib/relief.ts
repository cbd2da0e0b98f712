/**
 * Which layers of a plan recompute or offload, in the words of a question?  A plan's strategy names the policy alone;
 * a search took as few layers as memory demands unless a pin said otherwise, so a question about the plan says so too.
 */

import type { PlanAnswer } from "../api/queries/plans";
import { OFFLOAD_WORDS } from "../vocabulary";

const WHERE_NEEDED = OFFLOAD_WORDS[2];

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

/**
 * The strategy of a plan with the words for its layers, as the command line prints it: `full` where every layer is
 * computed again, else what the question asked for.
 */
export function toldStrategy(
  plan: Pick<PlanAnswer, "strategy" | "stages" | "problem" | "origins">,
): Readonly<Record<string, unknown>> {
  if (plan.stages.every(isWhole)) return plan.strategy;
  const told: Record<string, unknown> = { ...plan.strategy };
  for (const name of RELIEF_FIELDS) {
    if (told[name] !== undefined)
      told[name] = plan.origins?.given[name] ?? reliefWord(plan, name, told[name] as Value);
  }
  return told;
}

/** Whether every layer of a stage is computed again or kept by the host. */
function isWhole({ layers, recompute, offload }: PlanAnswer["stages"][number]): boolean {
  const again = recompute.num_layers_per_chunk.reduce((sum, each) => sum + each, 0);
  return Math.max(again, offload.activation_layers) >= layers;
}

/** `none`, `full 3/10` (layers computed again of layers held) or `selective norm+mlp 4/4`. */
export function stageRecompute({
  layers,
  recompute,
}: Pick<PlanAnswer["stages"][number], "layers" | "recompute">) {
  if (recompute.policy === "none") return "none";
  const again = recompute.num_layers_per_chunk.reduce((sum, each) => sum + each, 0);
  return [recompute.policy, recompute.modules.join("+"), `${again}/${layers}`].filter(Boolean).join(" ");
}

/** A move of the ledger with policies alone, as a comparison of two plans writes it. */
export function plainMove(move: string): string {
  return move.replace(`-> ${WHERE_NEEDED}`, "-> true").replace(`-${WHERE_NEEDED}`, "");
}
