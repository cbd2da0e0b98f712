/** Launch files of a plan, or of the same question's best plan in another back-end: to read, and as a folder to keep. */

import { queryOptions } from "@tanstack/react-query";
import { api, ask, askWithResponse, type Schemas } from "../client";
import { type Download, download } from "../download";
import { ApiProblem } from "../problem";

export type Emission = Schemas["EmissionView"];

export interface EmissionChoice {
  /** `NAME` or `NAME==RELEASE`; "" = the plan's own. */
  readonly backend: string;
  readonly launcher: string;
}

/** The files, or the job that still searches the plan that they are of. */
export type Emitted = { readonly files: Emission } | { readonly job: string };

/** The parts of a manifest that a person reads; the API describes it as an object. */
export interface Manifest {
  readonly backend: string;
  readonly release: string;
  readonly plan_id: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly launch_command: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly assumptions: readonly string[];
}

const PATH = "/v1/plans/{plan}/emissions";

export const emissionQuery = (plan: string, { backend, launcher: said }: EmissionChoice) =>
  queryOptions({
    queryKey: ["plan", plan, "emission", backend, said],
    queryFn: async ({ signal }): Promise<Emitted> => {
      // A launcher of a typed address may be none; then the API says so.
      const launcher = said as Schemas["Launcher"];
      try {
        const params = { path: { plan }, query: { backend: backend || undefined, launcher } };
        return { files: (await ask(api.GET(PATH, { params, signal }))) as Emission };
      } catch (error) {
        const absent = error instanceof ApiProblem && error.problem.status === 404;
        if (!absent || backend === "") throw error;
      }
      // Reading plans nothing; the question sent does.
      const body = { backend, launcher } as Schemas["EmissionQuestion"];
      const { data, response } = await askWithResponse<unknown>(
        api.POST(PATH, { params: { path: { plan } }, body, signal }),
      );
      return response.status === 202
        ? { job: (data as Schemas["JobRecord"]).id }
        : { files: data as Emission };
    },
    // What is stored for another back-end may become a better plan.
    staleTime: plan.length === 64 && backend === "" ? Number.POSITIVE_INFINITY : 30_000,
  });

/** The whole folder as a zip file.  Throws ApiProblem. */
export function downloadEmission(plan: string, { backend, launcher }: EmissionChoice): Promise<Download> {
  const address = new URL(`/v1/plans/${encodeURIComponent(plan)}/emissions`, window.location.origin);
  if (backend) address.searchParams.set("backend", backend);
  address.searchParams.set("launcher", launcher);
  return download(address, "application/zip");
}
