/** What is asked about a plan is asked inside the back-end that runs it, whatever its question allowed. */

import type { PlanAnswer } from "../../api/queries/plans";
import { spelled } from "../../lib/backends";

type Inside = Pick<PlanAnswer, "backend" | "release" | "problem">;

/** `NAME==RELEASE` of the plan. */
export function ownBackend({ backend, release }: Pick<PlanAnswer, "backend" | "release">): string {
  return spelled(backend, release);
}

export function ownConstraints(plan: Inside): PlanAnswer["problem"]["constraints"] {
  return {
    ...plan.problem.constraints,
    backends: [ownBackend(plan)],
  } as PlanAnswer["problem"]["constraints"];
}
