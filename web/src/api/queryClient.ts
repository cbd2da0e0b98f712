/** When is an answer asked for again?  Not while it is fresh, not after a refusal, twice after silence. */

import { QueryClient } from "@tanstack/react-query";
import { ApiProblem } from "./problem";

/** Silence, and the answers that ask to be repeated. */
const TRANSIENT = new Set([0, 429, 503]);

export function worthRepeating(failures: number, error: unknown): boolean {
  return failures < 2 && error instanceof ApiProblem && TRANSIENT.has(error.problem.status);
}

export function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: { retry: worthRepeating, staleTime: 30_000, refetchOnWindowFocus: false },
      mutations: { retry: false },
    },
  });
}
