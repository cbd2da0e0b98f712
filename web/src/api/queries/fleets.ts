/** A fleet that is shared: the question as a file, the answer by its id, launch files of a job on its own nodes. */

import { queryOptions } from "@tanstack/react-query";
import { api, ask, authorizedFetch, type Schemas } from "../client";
import { type Download, download } from "../download";
import { problemOfAnswer, problemOfSilence } from "../problem";

export type Fleet = Schemas["Fleet"];
export type JobAllocation = Schemas["JobAllocation"];
export type PoolUse = Schemas["PoolUse"];
export type Shared = { readonly fleet: string } | { readonly job: string };

/** Of a host list in an address. */
const LONGEST_LINE = 300;

/** Share what a fleet file says, YAML or JSON, as it is.  Throws ApiProblem. */
export async function shareFleet(file: string): Promise<Shared> {
  const response = await authorizedFetch(
    new Request(new URL("/v1/fleets", window.location.origin), {
      method: "POST",
      headers: { "Content-Type": "application/yaml" },
      body: file,
    }),
  ).catch((cause: unknown) => {
    throw problemOfSilence(cause);
  });
  const answer: unknown = await response.json().catch(() => undefined);
  if (!response.ok) throw problemOfAnswer(response, answer);
  if (response.status === 202) return { job: (answer as Schemas["JobRecord"]).id };
  return { fleet: response.headers.get("location")?.split("/").at(-1) ?? "" };
}

/** A stored answer never changes. */
export const fleetQuery = (fleet: string) =>
  queryOptions({
    queryKey: ["fleet", fleet],
    queryFn: async ({ signal }) =>
      (await ask(api.GET("/v1/fleets/{fleet}", { params: { path: { fleet } }, signal }))) as Fleet,
    staleTime: Number.POSITIVE_INFINITY,
  });

/** The launch folder of a job's plan, its nodes as hosts, as a zip file.  Throws ApiProblem. */
export function downloadLaunch(job: JobAllocation, launcher: string): Promise<Download> {
  const plan = encodeURIComponent(job.plan_id ?? "");
  const address = new URL(`/v1/plans/${plan}/emissions`, window.location.origin);
  address.searchParams.set("launcher", launcher);
  for (const line of hostLines(job.nodes ?? [])) address.searchParams.append("hosts", line);
  return download(address, "application/zip");
}

/** Names in lines of at most so many characters. */
export function hostLines(nodes: readonly string[], longest = LONGEST_LINE): readonly string[] {
  const lines: string[] = [];
  for (const name of nodes) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + name.length <= longest)
      lines[lines.length - 1] = `${last},${name}`;
    else lines.push(name);
  }
  return lines;
}
