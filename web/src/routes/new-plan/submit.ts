/** How is a question asked?  As a job, so that its search can be watched and outlives this page. */

import { api, askWithResponse, type Schemas } from "../../api/client";
import { ApiProblem } from "../../api/problem";
import type { PlanQuestion } from "./question";

export type Asked = { plan: string } | { job: string };

async function post(body: PlanQuestion, prefer: string | undefined): Promise<Asked> {
  const params = { header: prefer ? { prefer } : {} };
  const { data, response } = await askWithResponse(api.POST("/v1/plans", { body, params }));
  return response.status === 202
    ? { job: (data as unknown as Schemas["JobRecord"]).id }
    : { plan: (data as Schemas["PlanAnswer"]).plan_id };
}

/** The stored plan, or the job that searches it.  Throws ApiProblem. */
export async function askForPlan(body: PlanQuestion): Promise<Asked> {
  try {
    return await post(body, "respond-async");
  } catch (error) {
    // A service without a job worker still answers short searches.
    if (
      error instanceof ApiProblem &&
      error.problem.status === 503 &&
      /runs no jobs/.test(error.problem.detail)
    ) {
      return await post(body, undefined);
    }
    throw error;
  }
}
