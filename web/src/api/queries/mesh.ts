/** Where every rank of a plan runs. */

import { queryOptions } from "@tanstack/react-query";
import { api, ask, type Schemas } from "../client";
import { staleTimeOf } from "./plans";

export type MeshView = Schemas["MeshView"];
export type MapAxis = Schemas["MapAxis"];

export const meshQuery = (plan: string) =>
  queryOptions({
    queryKey: ["plan", plan, "mesh"],
    queryFn: ({ signal }) => ask(api.GET("/v1/plans/{plan}/mesh", { params: { path: { plan } }, signal })),
    staleTime: staleTimeOf(plan),
  });
