/** In which order are the plans of a page shown, and which two are compared? */

import type { PlanSummary } from "../../api/queries/plans";
import type { Sort } from "../../components/DataTable";

export const NEWEST_FIRST: Sort = { by: "made", descending: true };

type Value = string | number | null | undefined;

const VALUES: Readonly<Record<string, (plan: PlanSummary) => Value>> = {
  model: (plan) => plan.model,
  cluster: (plan) => plan.cluster,
  devices: (plan) => plan.num_devices,
  backend: (plan) => plan.backend,
  batch: (plan) => plan.global_batch_size,
  step: (plan) => plan.step_time_s,
  rate: (plan) => plan.tokens_per_s_per_device,
  mfu: (plan) => plan.model_flops_utilization,
  memory: (plan) => plan.peak_memory_bytes,
  fits: (plan) => plan.fits_probability,
  price: (plan) => plan.cost_per_step,
  made: (plan) => plan.created_at,
};

/** Plans by a column; those without a value stand last, whichever way it goes. */
export function sortedPlans(plans: readonly PlanSummary[], { by, descending }: Sort): readonly PlanSummary[] {
  const value = VALUES[by];
  if (!value) return plans;
  return [...plans].sort((one, other) => {
    const [a, b] = [value(one), value(other)];
    if (a == null || b == null) return Number(a == null) - Number(b == null);
    const order = typeof a === "string" ? a.localeCompare(String(b)) : a - Number(b);
    return descending ? -order : order;
  });
}

/** The chosen plans after one was chosen or left out; of three the oldest choice goes. */
export function chosenWith(chosen: readonly string[], plan: string): readonly string[] {
  return chosen.includes(plan) ? chosen.filter((each) => each !== plan) : [...chosen, plan].slice(-2);
}
