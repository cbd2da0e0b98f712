/**
 * Which question do the controls ask?  The plan's own problem and strategy with what was changed; what follows from a
 * changed field (dp from tp, micro-batches from dp) is left out, so that the service fills it in and says so.
 */

import type { EstimateQuestion } from "../../../api/queries/estimates";
import type { PlanAnswer } from "../../../api/queries/plans";
import { ownBackend } from "../../../lib/backends";
import { RELIEF_FIELDS, reliefWord } from "../../../lib/relief";
import { typedNumber } from "../../../lib/typed";
import type { PlanQuestion } from "../../new-plan/question";
import { type Chosen, devicesOf, LEVERS, NOTHING, SIZES, STRATEGY_FIELDS } from "./fields";

const WORKLOAD_FIELDS = [...SIZES, "precision", "optimizer"] as const;
type Value = number | string | boolean;
type Given = Record<string, Value>;

/** Fields that the product of the degrees decides. */
const REST_OF_WORLD = ["dp_replicate", "dp_shard", "num_microbatches", "microbatch_group_size"];
const KEPT_ELSEWHERE: ReadonlySet<string> = new Set([...STRATEGY_FIELDS, "sp", "cp_kind"]);
const LOOPED = /^(interleaved|looped)/;

export function changedFields(chosen: Chosen): readonly (keyof Chosen)[] {
  return (Object.keys(chosen) as (keyof Chosen)[]).filter((name) => chosen[name] !== "");
}

function typed(text: string): Value {
  if (text === "true" || text === "false") return text === "true";
  return typedNumber(text) ?? text;
}

/** What the service decides anew when a field is `value`. */
function followers(name: string, value: Value, own: Given): readonly string[] {
  switch (name) {
    case "tp":
      return value === 1 || own.tp === 1 ? [...REST_OF_WORLD, "sp", "overlap_tp"] : REST_OF_WORLD;
    case "cp":
      return [...REST_OF_WORLD, "cp_kind"];
    case "pp":
      return value === 1 || own.pp === 1 ? [...REST_OF_WORLD, "vpp", "schedule"] : REST_OF_WORLD;
    case "vpp":
      return (value === 1) === (own.vpp === 1)
        ? ["microbatch_group_size"]
        : ["microbatch_group_size", "schedule"];
    case "schedule":
      return LOOPED.test(String(value)) && LOOPED.test(String(own.schedule))
        ? ["microbatch_group_size"]
        : ["microbatch_group_size", "vpp"];
    case "micro_batch_size":
      return ["num_microbatches", "microbatch_group_size"];
    case "recompute":
      return ["recompute_modules"];
    default:
      return [];
  }
}

/** The strategy to estimate. */
export function strategyOf(plan: PlanAnswer, chosen: Chosen): Given {
  const { dp: _dp, recompute_modules: modules, ...own } = plan.strategy as Record<string, Value | string[]>;
  const given: Given = { ...(own as Given) };
  if (Array.isArray(modules) && modules.length > 0) given.recompute_modules = modules.join("+");
  const changed = STRATEGY_FIELDS.filter((name) => chosen[name] !== "");
  const left: string[] = changed.flatMap((name) => followers(name, typed(chosen[name]), own as Given));
  for (const name of RELIEF_FIELDS)
    if (given[name] !== undefined) given[name] = reliefWord(plan, name, given[name]);
  if (chosen.devices !== "" || chosen.global_batch_size !== "") left.push(...REST_OF_WORLD);
  for (const name of left) delete given[name];
  // Another back-end has other switches: it takes the degrees, the schedule and the relief, and fills in the rest.
  if (chosen.backend !== "")
    for (const name of Object.keys(given)) if (!KEPT_ELSEWHERE.has(name)) delete given[name];
  for (const name of changed) given[name] = typed(chosen[name]);
  return given;
}

/** Whether a field that is not chosen has the plan's value, and does not follow from another choice. */
export function keepsOwn(plan: PlanAnswer, chosen: Chosen, name: keyof Chosen): boolean {
  const isOfStrategy = (STRATEGY_FIELDS as readonly string[]).includes(name);
  return !isOfStrategy || name in strategyOf(plan, { ...chosen, [name]: "" });
}

export function scaleOf(chosen: Chosen): Record<string, number> {
  const entries = LEVERS.filter((name) => chosen[name] !== "").map((name) => [name, typed(chosen[name])]);
  return Object.fromEntries(entries);
}

/** The plan's own problem with what is changed of it, to one back-end, as a question says it. */
function problemPart(plan: PlanAnswer, chosen: Chosen) {
  const { model, cluster, workload, objective, profile, calibration } = plan.problem;
  const constraints = { ...plan.problem.constraints, backends: [chosen.backend || ownBackend(plan)] };
  const changed = WORKLOAD_FIELDS.filter((name) => chosen[name] !== "");
  const elsewhere = chosen.cluster !== "";
  return {
    model,
    cluster: elsewhere ? chosen.cluster : cluster,
    devices: typedNumber(chosen.devices || (elsewhere ? String(devicesOf(plan)) : "")),
    workload: { ...workload, ...Object.fromEntries(changed.map((name) => [name, typed(chosen[name])])) },
    constraints,
    objective,
    // Measurements and factors are of the device and the software that they were taken with.
    calibration: elsewhere || chosen.backend !== "" ? undefined : calibration,
    profile: elsewhere ? "none" : (profile?.profile_id ?? "none"),
  };
}

export function estimateQuestion(plan: PlanAnswer, chosen: Chosen): EstimateQuestion {
  const question = {
    ...problemPart(plan, chosen),
    strategy: strategyOf(plan, chosen),
    scale: scaleOf(chosen),
  };
  // The server fills in what is absent; the types of the document name defaults as present.
  return question as unknown as EstimateQuestion;
}

/** Asks for the plan's cluster under scaled inputs: the service scales it, this page only sends it back. */
export function scaledProblemQuestion(plan: PlanAnswer, chosen: Chosen): EstimateQuestion {
  const question = {
    ...problemPart(plan, { ...NOTHING, cluster: chosen.cluster }),
    strategy: chosen.cluster === "" ? strategyOf(plan, NOTHING) : {},
    scale: scaleOf(chosen),
    include_problem: true,
  };
  return question as unknown as EstimateQuestion;
}

/** What a search may no longer choose. */
export function pinsOf(chosen: Chosen): Given {
  return Object.fromEntries(
    STRATEGY_FIELDS.filter((name) => chosen[name] !== "").map((name) => [name, typed(chosen[name])]),
  );
}

/** The best plan with the changed fields as pins; on `cluster`, where inputs of it were scaled. */
export function pinnedQuestion(plan: PlanAnswer, chosen: Chosen, cluster?: unknown): PlanQuestion {
  const asked = problemPart(plan, chosen);
  const question = {
    ...asked,
    cluster: cluster ?? asked.cluster,
    constraints: { ...asked.constraints, pins: { ...asked.constraints.pins, ...pinsOf(chosen) } },
  };
  return question as unknown as PlanQuestion;
}
