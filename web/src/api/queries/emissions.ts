/** Launch files of a plan: to read, and as a folder to keep. */

import { queryOptions } from "@tanstack/react-query";
import { api, ask, type Schemas } from "../client";
import { type Download, download } from "../download";
import { staleTimeOf } from "./plans";

export type Emission = Schemas["EmissionView"];

export interface EmissionChoice {
  readonly target: Schemas["TargetName"];
  readonly launcher: Schemas["Launcher"];
  /** A release of the target; "" = the one that is supported best. */
  readonly version: string;
}

/** The parts of a manifest that a person reads; the API describes it as an object. */
export interface Manifest {
  readonly target: string;
  readonly target_version: string;
  readonly plan_id: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly launch_command: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly assumptions: readonly string[];
  readonly projections: readonly Projection[];
}

/** Where the target runs something else than the plan says. */
export interface Projection {
  readonly field: string;
  readonly wanted: string;
  readonly emitted: string;
  readonly reason: string;
  readonly kept_by?: readonly string[];
}

const PATH = "/v1/plans/{plan}/emissions/{target}";

export const emissionQuery = (plan: string, { target, launcher, version }: EmissionChoice) =>
  queryOptions({
    queryKey: ["plan", plan, "emission", target, launcher, version],
    queryFn: async ({ signal }) => {
      const params = { path: { plan, target }, query: { launcher, version: version || undefined } };
      return (await ask(api.GET(PATH, { params, signal }))) as Emission;
    },
    staleTime: staleTimeOf(plan),
  });

/** The whole folder as a zip file.  Throws ApiProblem. */
export function downloadEmission(plan: string, choice: EmissionChoice): Promise<Download> {
  const address = new URL(
    `/v1/plans/${encodeURIComponent(plan)}/emissions/${choice.target}`,
    window.location.origin,
  );
  address.searchParams.set("launcher", choice.launcher);
  if (choice.version) address.searchParams.set("version", choice.version);
  return download(address, "application/zip");
}
