/** What is in files of the reader's machine: a cluster, or measurements. */

import { contentOf } from "../../lib/chosenFiles";
import { api, ask, type Schemas } from "../client";

export type ClusterCompletion = Schemas["ClusterCompletion"];
export type ImportAnswer = Schemas["ImportAnswer"];
export type FileOutcome = ImportAnswer["files"][number];

/** Empty text = not said. */
export interface CompletionWish {
  readonly base: string;
  readonly device: string;
  readonly format: string;
}

export interface ImportWish {
  readonly facts: Record<string, string>;
  readonly format: string;
  readonly keepGoing: boolean;
}

const sent = (files: readonly File[]) => Promise.all(files.map(contentOf));
const said = (text: string) => text.trim() || null;

/** The cluster that topology files describe; nothing is stored. */
export async function completeCluster(
  files: readonly File[],
  { base, device, format }: CompletionWish,
): Promise<ClusterCompletion> {
  const named = { base: said(base), device: said(device), format: said(format), name: "imported" };
  const body = { files: await sent(files), ...named };
  // openapi-fetch turns pairs of numbers into lists.
  return (await ask<unknown>(api.POST("/v1/clusters:complete", { body }))) as ClusterCompletion;
}

/** What logs measured; stored unless it is a dry run. */
export async function importMeasurements(
  files: readonly File[],
  { facts, format, keepGoing }: ImportWish,
  dryRun: boolean,
): Promise<ImportAnswer> {
  const wanted = { facts, format: said(format), keep_going: keepGoing, dry_run: dryRun };
  return ask(api.POST("/v1/profiles:import", { body: { files: await sent(files), ...wanted } }));
}
