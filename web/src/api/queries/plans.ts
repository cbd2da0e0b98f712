/** Plans: one, why it is so, and the list. */

import { queryOptions } from "@tanstack/react-query";
import { api, ask, type Schemas } from "../client";
import { type Download, download } from "../download";

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

export const memoryQuery = (plan: string) =>
  queryOptions({
    queryKey: ["plan", plan, "memory"],
    queryFn: ({ signal }) => ask(api.GET("/v1/plans/{plan}/memory", { params: { path: { plan } }, signal })),
    staleTime: staleTimeOf(plan),
  });

export interface PlanFilter {
  model?: string;
  cluster?: string;
  backend?: string;
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

/** Point a label at a plan.  Throws ApiProblem. */
export function putLabel(name: string, plan: string): Promise<Schemas["LabelView"]> {
  return ask(api.PUT("/v1/labels/{name}", { params: { path: { name } }, body: { plan } }));
}

export const labelQuery = (name: string) =>
  queryOptions({
    queryKey: ["label", name],
    queryFn: ({ signal }) => ask(api.GET("/v1/labels/{name}", { params: { path: { name } }, signal })),
  });

/** The plan as one HTML file to send around. */
export function downloadReport(plan: string): Promise<Download> {
  return download(
    new URL(`/v1/plans/${encodeURIComponent(plan)}/report`, window.location.origin),
    "text/html",
  );
}
