/** How much a plan depends on numbers that may be wrong. */

import { queryOptions } from "@tanstack/react-query";
import { api, ask, type Schemas } from "../client";
import { staleTimeOf } from "./plans";

export type Sensitivity = Schemas["Sensitivity"];
export type SensitivityPoint = Schemas["SensitivityPoint"];

export const sensitivityQuery = (plan: string, changes: readonly number[], replan: boolean) =>
  queryOptions({
    queryKey: ["plan", plan, "sensitivity", changes, replan],
    queryFn: ({ signal }) => {
      const params = { path: { plan }, query: { changes: [...changes], replan } };
      return ask(api.GET("/v1/plans/{plan}/sensitivity", { params, signal }));
    },
    staleTime: staleTimeOf(plan),
    retry: false,
  });
