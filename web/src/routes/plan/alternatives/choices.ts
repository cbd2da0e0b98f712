/** What else could run?  The plan, its runners-up, and every strategy one move away, as rows of one list. */

import type { Schemas } from "../../../api/client";
import type { Explanation, PlanAnswer } from "../../../api/queries/plans";
import type { Pins } from "../../../api/queries/variants";
import { gibibytes, plural } from "../../../lib/format";
import { RELIEF_FIELDS, reliefWord } from "../../../lib/relief";

type Neighbour = Schemas["Neighbour"];
export type ChoiceKind = "plan" | "runner_up" | Neighbour["outcome"];

export interface Choice {
  /** In the address: `plan`, `runner-up-1`, `tp=8`. */
  readonly id: string;
  readonly kind: ChoiceKind;
  readonly name: string;
  readonly step_time_s: number | null;
  readonly peak_memory_bytes: number | null;
  readonly slower_by: number | null;
  /** It fits and nothing of the question excludes it. */
  readonly fits: boolean;
  /** Why it cannot run, or what it pays most for. */
  readonly reason: string;
  /** What to hold fast to get it; null = the plan itself. */
  readonly pins: Pins | null;
  readonly terms_s: readonly Schemas["TermChange"][];
}

/** They follow from other fields: named only where nothing else differs. */
const DERIVED: ReadonlySet<string> = new Set(["dp", "num_microbatches", "microbatch_group_size"]);
/** Chosen for each stage by the search; no pin. */
const UNPINNABLE: ReadonlySet<string> = new Set(["recompute_modules"]);

export function choicesOf(plan: PlanAnswer, explanation: Explanation | undefined): readonly Choice[] {
  const own: Choice = {
    id: "plan",
    kind: "plan",
    name: "This plan",
    step_time_s: plan.step_time_s,
    peak_memory_bytes: plan.peak_memory_bytes,
    slower_by: 0,
    fits: true,
    reason: "",
    pins: null,
    terms_s: [],
  };
  return [
    own,
    ...(plan.alternatives ?? []).map((each, index) => runnerUp(plan, each, index)),
    ...(explanation?.neighbours ?? []).map(neighbourChoice),
  ];
}

function runnerUp(plan: PlanAnswer, each: Schemas["Alternative"], index: number): Choice {
  const told = each.differs_in.filter((field) => !DERIVED.has(field));
  const fields = told.length > 0 ? told : each.differs_in;
  const relief = (field: string, value: unknown) => {
    const name = RELIEF_FIELDS.find((known) => known === field);
    return name === undefined ? value : reliefWord(plan, name, value as string | boolean);
  };
  const pins = Object.entries(each.strategy)
    .filter(([field]) => !UNPINNABLE.has(field))
    .map(([field, value]) => [field, relief(field, value)]);
  return {
    id: `runner-up-${index + 1}`,
    kind: "runner_up",
    name: fields.map((field) => `${field} ${words(each.strategy[field])}`).join(", "),
    step_time_s: each.step_time_s,
    peak_memory_bytes: each.peak_memory_bytes,
    slower_by: each.slower_by,
    fits: true,
    reason: "",
    pins: Object.fromEntries(pins) as Pins,
    terms_s: [],
  };
}

function neighbourChoice(each: Neighbour): Choice {
  const pins = pinsOfMove(each.move);
  const [[field, value] = ["", ""]] = Object.entries(pins);
  return {
    id: `${field}=${value}`,
    kind: each.outcome,
    name: each.move.replace("->", "\u2192"),
    step_time_s: each.step_time_s ?? null,
    peak_memory_bytes: each.peak_memory_bytes ?? null,
    slower_by: each.slower_by ?? null,
    fits: each.outcome !== "does_not_fit" && each.outcome !== "illegal" && !each.reason,
    reason: reasonOf(each),
    pins,
    terms_s: each.terms_s ?? [],
  };
}

function reasonOf(each: Neighbour): string {
  const over = each.over_limit_bytes;
  if (over != null) return `stage ${each.over_limit_stage} misses ${gibibytes(over)}`;
  return each.reason || (each.outcome === "does_not_fit" ? "breaks a limit of the question" : "");
}

/** "tp 4 -> 8" -> {tp: 8}. */
export function pinsOfMove(move: string): Pins {
  const [, field, value] = /^(\S+) .*-> (.+)$/.exec(move) ?? [];
  if (!field || value === undefined) return {};
  if (value === "true" || value === "false") return { [field]: value === "true" };
  return { [field]: /^\d+$/.test(value) ? Number(value) : value };
}

function words(value: unknown): string {
  return Array.isArray(value) ? value.join("+") || "none" : String(value);
}

export const KIND_NAMES: Record<ChoiceKind, string> = {
  plan: "Plan",
  runner_up: "Runner-up",
  faster: "Faster",
  as_fast: "As fast",
  slower: "Slower",
  does_not_fit: "Does not fit",
  illegal: "Illegal",
};

export type SortKey = "step" | "memory" | "kind" | "name";

/** Rows in the order of a column; what has no number comes last either way. */
export function sorted(choices: readonly Choice[], by: SortKey, down: boolean): readonly Choice[] {
  const sign = down ? -1 : 1;
  const number = (value: number | null) => (value === null ? null : value * sign);
  const key = (each: Choice): number | null =>
    number(by === "step" ? each.step_time_s : by === "memory" ? each.peak_memory_bytes : null);
  const kinds = Object.keys(KIND_NAMES);
  return [...choices].sort((a, b) => {
    if (by === "name") return sign * a.name.localeCompare(b.name);
    if (by === "kind") return sign * (kinds.indexOf(a.kind) - kinds.indexOf(b.kind));
    const [left, right] = [key(a), key(b)];
    if (left === null || right === null) return Number(left === null) - Number(right === null);
    return left - right;
  });
}

/** What the picture of the choices says. */
export function choicesSentence(choices: readonly Choice[], limit_bytes: number): string {
  const others = choices.filter((each) => each.kind !== "plan");
  const number = (kinds: readonly ChoiceKind[]) => others.filter((each) => kinds.includes(each.kind)).length;
  const faster = others.filter((each) => each.fits && (each.slower_by ?? 0) < 0).length;
  const first =
    faster === 0
      ? "No choice beside the plan that fits is faster"
      : `${faster} ${faster === 1 ? "choice" : "choices"} that ${faster === 1 ? "fits is" : "fit are"} faster`;
  const runnersUp = number(["runner_up"]);
  return `${first}: ${plural(runnersUp, "runner-up", "runners-up")} and ${plural(others.length - runnersUp, "strategy", "strategies")} one move away, ${number(["does_not_fit"])} of which do not fit into ${gibibytes(limit_bytes)} and ${number(["illegal"])} break a rule.`;
}
