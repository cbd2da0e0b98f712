/** What is proved about a plan, in one sentence that says of which spaces. */

import type { PlanAnswer } from "../../api/queries/plans";
import { UNRESTRICTED } from "../../lib/backends";
import { percent, seconds } from "../../lib/format";

type Proved = Pick<
  PlanAnswer,
  "status" | "gap" | "lower_bound_s" | "backend" | "backends" | "problem" | "upgraded_from" | "fastest"
>;

/** Below that the digits that are shown would be zeros. */
const NO_GAP = 5e-5;

export function proofOf(plan: Proved): { name: string; value: string; small: string } {
  const fastest = plan.fastest;
  if (fastest && !fastest.is_recommended && fastest.status === "optimal") {
    const small = `${percent(fastest.slower_by, 1)} from the fastest plan of ${seconds(fastest.step_time_s)}, which is proved`;
    return { name: "Proof", value: "Recommended", small };
  }
  if (plan.lower_bound_s == null || plan.gap == null) {
    return {
      name: "Proof",
      value: "Not searched",
      small: "the strategy was given and is estimated: no bound is known",
    };
  }
  if (plan.status !== "optimal") {
    const small = `no plan is faster than ${seconds(plan.lower_bound_s)}`;
    return { name: "Gap to the bound", value: percent(plan.gap, 2), small };
  }
  const more = plan.gap > NO_GAP ? ` by more than ${percent(plan.gap, 2)}` : "";
  return {
    name: "Proof",
    value: "Proved best",
    small: `no plan in ${spaces(plan)} is predicted to be faster${more}`,
  };
}

function spaces(plan: Proved): string {
  // Plans of earlier releases were proved best in a space that was no back-end's.
  if (plan.upgraded_from != null) return "the space of the release that made it";
  if (plan.backend === UNRESTRICTED) return "the unrestricted space";
  return (plan.backends ?? []).length > 1
    ? "the spaces of the back-ends that were asked"
    : "the space of the back-end that was asked";
}
