/** Long searches: the list, one, and its end. */

import { queryOptions } from "@tanstack/react-query";
import { api, ask, type Schemas } from "../client";

export type JobRecord = Schemas["JobRecord"];
export type JobStatus = JobRecord["status"];

const ENDED: ReadonlySet<JobStatus> = new Set(["succeeded", "failed", "cancelled"]);
const LIST_EVERY_MS = 3_000;

export function hasEnded(job: { status: JobStatus }): boolean {
  return ENDED.has(job.status);
}

export interface JobFilter {
  status?: JobStatus;
  mine?: boolean;
  before?: string;
}

export const jobsQuery = (filter: JobFilter) =>
  queryOptions({
    queryKey: ["jobs", filter],
    queryFn: ({ signal }) => ask(api.GET("/v1/jobs", { params: { query: filter }, signal })),
    staleTime: 0,
    // A list without running jobs changes only when somebody asks for a plan.
    refetchInterval: (query) => (query.state.data?.jobs.every(hasEnded) ? 4 * LIST_EVERY_MS : LIST_EVERY_MS),
  });

export const jobQuery = (job: string) =>
  queryOptions({
    queryKey: ["job", job],
    queryFn: ({ signal }) => ask(api.GET("/v1/jobs/{job}", { params: { path: { job } }, signal })),
    staleTime: 0,
  });

export function cancelJob(job: string): Promise<JobRecord> {
  return ask(api.POST("/v1/jobs/{job}:cancel", { params: { path: { job } } }));
}
