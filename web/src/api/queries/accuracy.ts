/** How far were predictions from measured runs? */

import { queryOptions } from "@tanstack/react-query";
import { api, ask, type Schemas } from "../client";

export const reportsQuery = queryOptions({
  queryKey: ["accuracy"],
  queryFn: async ({ signal }) => (await ask(api.GET("/v1/accuracy", { signal }))).reports,
});

export const reportQuery = (name: string) =>
  queryOptions({
    queryKey: ["accuracy", name],
    // openapi-fetch takes pairs for lists.
    queryFn: async ({ signal }) =>
      (await ask(
        api.GET("/v1/accuracy/{name}", { params: { path: { name } }, signal }),
      )) as Schemas["AccuracyView"],
    // Thousands of rows that change as a whole.
    structuralSharing: false,
  });
