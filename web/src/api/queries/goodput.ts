/** Tokens a day that a plan trains, with failures. */

import { queryOptions } from "@tanstack/react-query";
import { api, ask, type Schemas } from "../client";
import type { operations } from "../schema";
import { staleTimeOf } from "./plans";

export type Goodput = Schemas["Goodput"];
export type GoodputQuestion = operations["get_goodput_v1_plans__plan__goodput_get"]["parameters"]["query"];

export const goodputQuery = (plan: string, question: GoodputQuestion) =>
  queryOptions({
    queryKey: ["plan", plan, "goodput", question],
    queryFn: ({ signal }) =>
      ask(api.GET("/v1/plans/{plan}/goodput", { params: { path: { plan }, query: question }, signal })),
    staleTime: staleTimeOf(plan),
    retry: false,
  });
