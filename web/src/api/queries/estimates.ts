/** The numbers of one strategy, without any search. */

import { api, ask, type Schemas } from "../client";

export type Estimate = Schemas["Estimate"];
export type EstimateQuestion = Schemas["EstimateQuestion"];

export async function fetchEstimate(question: EstimateQuestion, signal?: AbortSignal): Promise<Estimate> {
  // openapi-fetch turns the pair of the interval into a list.
  return (await ask(api.POST("/v1/estimates", { body: question, signal }))) as Estimate;
}
