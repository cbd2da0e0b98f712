/** Why a real run differs from a plan: what the run left is sent, the comparison comes back. */

import { packed } from "../../lib/packed";
import { api, ask, type Schemas } from "../client";

export type Diagnosis = Schemas["Diagnosis"];
export type RunFinding = Schemas["RunFinding"];

/** Send logs and traces of a run of the plan.  Throws ApiProblem. */
export async function diagnose(plan: string, files: readonly File[]): Promise<Diagnosis> {
  const body = { files: await Promise.all(files.map(packed)) };
  // openapi-fetch turns the pair of the interval into a list; of text and bytes one is absent, which the types miss.
  return (await ask(
    api.POST("/v1/plans/{plan}/diagnosis", {
      params: { path: { plan } },
      body: body as unknown as Schemas["DiagnosisQuestion"],
    }),
  )) as Diagnosis;
}
