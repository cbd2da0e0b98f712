/** Plans of the same question with some fields held fast, the comparison of two plans, and configurations as text. */

import { queryOptions } from "@tanstack/react-query";
import { ownBackend } from "../../lib/backends";
import { api, ask, askWithResponse, type Schemas } from "../client";
import { type PlanAnswer, staleTimeOf } from "./plans";

export type Pins = Readonly<Record<string, number | string | boolean>>;
export type PlanDiff = Schemas["PlanDiff"];
export type TermChange = Schemas["TermChange"];
export type WhyNot = Schemas["WhyNot"];
export type ReadStrategy = Schemas["ReadStrategy"];

/** A plan, or the job that still searches it. */
export type Solved = { readonly plan: string } | { readonly job: string };

/** The question of a plan to one back-end, with pins; one pinned before is replaced. */
export function variantQuestion(
  plan: Pick<PlanAnswer, "backend" | "release" | "problem">,
  pins: Pins,
  backend = ownBackend(plan),
): Schemas["PlanQuestion"] {
  const { model, cluster, workload, objective, calibration, constraints, profile } = plan.problem;
  const question = {
    model,
    cluster,
    workload,
    objective,
    // A problem leaves out that the fastest is preferred; a question that says nothing prefers the recommended one.
    prefer: objective?.prefer ?? "fastest",
    calibration,
    constraints: { ...constraints, backends: [backend], pins: { ...constraints?.pins, ...pins } },
    profile: profile?.profile_id ?? "none",
  };
  // The server fills in what is absent; the types of the document name defaults as present.
  return question as unknown as Schemas["PlanQuestion"];
}

/** Ask for the best plan with the pins.  Asked again, the stored plan answers. */
export const variantQuery = (plan: PlanAnswer, pins: Pins) =>
  queryOptions({
    queryKey: ["plan", plan.plan_id, "variant", pins],
    queryFn: async ({ signal }): Promise<Solved> => {
      const body = variantQuestion(plan, pins);
      const { data, response } = await askWithResponse(api.POST("/v1/plans", { body, signal }));
      return response.status === 202
        ? { job: (data as unknown as Schemas["JobRecord"]).id }
        : { plan: (data as PlanAnswer).plan_id };
    },
    staleTime: Number.POSITIVE_INFINITY,
  });

export const whyNotQuery = (plan: string, pins: string) =>
  queryOptions({
    queryKey: ["plan", plan, "why-not", pins],
    queryFn: async ({ signal }) => {
      const params = { path: { plan }, query: { why_not: pins } };
      // With `why_not` the answer is always this one of the two.
      return (await ask(api.GET("/v1/plans/{plan}/explanation", { params, signal }))) as WhyNot;
    },
    staleTime: staleTimeOf(plan),
  });

export const diffQuery = (a: string, b: string) =>
  queryOptions({
    queryKey: ["diff", a, b],
    queryFn: async ({ signal }) => {
      const found = await ask(api.GET("/v1/plans/{a}/diff/{b}", { params: { path: { a, b } }, signal }));
      // openapi-fetch turns the pairs of a stage into lists.
      return found as PlanDiff;
    },
    staleTime: Math.min(staleTimeOf(a), staleTimeOf(b)),
  });

/** What a typed or pasted configuration says.  Throws ApiProblem with findings at /text. */
export async function readStrategy(text: string): Promise<ReadStrategy> {
  const read = await ask(api.POST("/v1/strategies:read", { body: { text } }));
  // openapi-fetch turns the pairs of a model into lists.
  return read as ReadStrategy;
}
