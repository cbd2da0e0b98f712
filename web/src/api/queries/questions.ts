/** What is wrong with a question, before it is asked? */

import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, ask, type Schemas } from "../client";

export type ProblemBounds = Schemas["ProblemBounds"];

export const problemCheckQuery = (question: Schemas["Question"]) =>
  queryOptions({
    queryKey: ["problem-check", question],
    queryFn: ({ signal }) => ask(api.POST("/v1/problems:check", { body: question, signal })),
    // Findings stay in place while the next ones come.
    placeholderData: keepPreviousData,
    staleTime: 60_000,
  });

/** Can it fit, and how fast is it at most?  Of a question without findings. */
export const problemBoundsQuery = (question: Schemas["Question"]) =>
  queryOptions({
    queryKey: ["problem-bounds", question],
    queryFn: ({ signal }) => ask(api.POST("/v1/problems:bound", { body: question, signal })),
    staleTime: 5 * 60_000,
    retry: false,
  });
