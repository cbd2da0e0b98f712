/** Plans: one, why it is so, and the list. */

import { queryOptions } from "@tanstack/react-query";
import { api, ask, type Schemas } from "../client";

export type PlanAnswer = Schemas["PlanAnswer"];
export type StagePlan = Schemas["StagePlan"];
export type Explanation = Schemas["Explanation"];
export type PlanSummary = Schemas["PlanSummary"];

/** A full id names content: what it says never changes. */
export function staleTimeOf(plan: string): number {
  return plan.length === 64 ? Number.POSITIVE_INFINITY : 30_000;
}

export const planQuery = (plan: string) =>
  queryOptions({
    queryKey: ["plan", plan],
    queryFn: async ({ signal }) => {
      const found = await ask(api.GET("/v1/plans/{plan}", { params: { path: { plan } }, signal }));
      // openapi-fetch turns the pair of the interval into a list.
      return found as PlanAnswer;
    },
    staleTime: staleTimeOf(plan),
  });

export const explanationQuery = (plan: string) =>
  queryOptions({
    queryKey: ["plan", plan, "explanation"],
    queryFn: async ({ signal }) => {
      const path = "/v1/plans/{plan}/explanation";
      // Without `why_not` the answer is always this one of the two.
      return (await ask(api.GET(path, { params: { path: { plan } }, signal }))) as Explanation;
    },
    staleTime: staleTimeOf(plan),
  });

export interface PlanFilter {
  model?: string;
  cluster?: string;
  problem_id?: string;
  limit?: number;
  after?: string;
}

export const plansQuery = (filter: PlanFilter) =>
  queryOptions({
    queryKey: ["plans", filter],
    queryFn: ({ signal }) => ask(api.GET("/v1/plans", { params: { query: filter }, signal })),
    staleTime: 5_000,
  });
