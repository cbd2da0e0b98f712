/** How fast is a job on each of these numbers of devices? */

import { queryOptions } from "@tanstack/react-query";
import { api, ask, type Schemas } from "../client";

export type ThroughputQuestion = Schemas["ThroughputQuestion"];
export type ThroughputPoint = Schemas["ThroughputPoint"];

export const throughputQuery = (question: ThroughputQuestion) =>
  queryOptions({
    queryKey: ["throughput", question],
    queryFn: async ({ signal }) => {
      const found = await ask(api.POST("/v1/throughput", { body: question, signal }));
      return found.points as readonly ThroughputPoint[];
    },
    // Asked again after that, rows that the budget left undecided may be known.
    staleTime: 5 * 60_000,
  });
