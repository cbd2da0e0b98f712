/** Which draft asks the question of a plan again?  Names and numbers; what the form does not know stays as it is there. */

import type { PlanAnswer } from "../../api/queries/plans";
import { ANY, textOf } from "../../lib/backends";
import { typedTraining } from "../../lib/training";
import { typedWorkload } from "../../lib/workload";
import {
  type Draft,
  OBJECTIVES,
  OPTIMIZERS,
  PRECISIONS,
  PREFERENCES,
  readNewPlanSearch,
} from "../new-plan.search";

type Problem = PlanAnswer["problem"];

const text = (value: number | null | undefined): string => (value == null ? "" : String(value));
const oneOf = <T extends string>(values: readonly T[], value: string | undefined): T | undefined =>
  values.find((each) => each === value);

export function draftOfProblem({
  model,
  cluster,
  workload,
  constraints,
  objective,
  profile,
  calibration,
}: Problem): Partial<Draft> {
  const devices = cluster.pools.reduce((sum, pool) => sum + pool.devices_per_node * pool.num_nodes, 0);
  return {
    model: model.name,
    cluster: cluster.name,
    devices: String(devices),
    batch: String(workload.global_batch_size),
    seq: String(workload.sequence_length),
    precision: oneOf(PRECISIONS, workload.precision),
    optimizer: oneOf(OPTIMIZERS, workload.optimizer),
    ...typedTraining(workload.training),
    ...typedWorkload(workload),
    objective: oneOf(OBJECTIVES, objective?.minimize),
    // A problem leaves out that the fastest is preferred.
    prefer: oneOf(PREFERENCES, objective?.prefer ?? "fastest"),
    price: text(objective?.price_per_device_hour),
    backend: textOf(constraints?.backends ?? [ANY]),
    pins: Object.entries(constraints?.pins ?? {})
      .map(([name, value]) => `${name}=${value}`)
      .join(" "),
    forbid: (constraints?.forbids ?? []).join(" "),
    margin: text(
      constraints?.memory_margin_fraction == null ? null : percentOf(constraints.memory_margin_fraction),
    ),
    fits: text(constraints?.fits == null ? null : percentOf(constraints.fits)),
    profile: profile?.profile_id ?? "none",
    calibration: calibration?.calibration_id,
    maxStep: text(constraints?.max_step_time_s),
    minRate: text(constraints?.min_tokens_per_s),
  };
}

/** 0.06 -> 6, without the digits that binary fractions add. */
function percentOf(fraction: number): number {
  return Number((fraction * 100).toPrecision(12));
}

export function searchOfProblem(problem: Problem) {
  return readNewPlanSearch(draftOfProblem(problem));
}
