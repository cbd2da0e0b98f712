/** What a question can name: models, clusters, devices. */

import { queryOptions } from "@tanstack/react-query";
import { api, ask, type Schemas } from "../client";

/** The API types a row as an object; these are the fields that planner.answers.summaries writes. */
export interface ModelRow {
  name: string;
  family: string;
  parameters: number;
  active_parameters: number;
  num_layers: number;
  /** Of them; 0 where there is no encoder. */
  encoder_layers: number;
  hidden_size: number;
  vocab_size: number;
  /** null: no positions that end somewhere. */
  max_sequence_length: number | null;
  num_experts: number;
  builtin: boolean;
}

export interface ClusterRow {
  name: string;
  num_devices: number;
  device: string;
  devices_per_node: number;
  memory_bytes: number;
  scale_up: string;
  scale_up_domain_size: number;
  scale_up_bandwidth_bytes_per_s: number;
  nics_per_node: number;
  nic_bandwidth_bytes_per_s: number;
  builtin: boolean;
}

const rows = <T>(listing: { items: unknown }): readonly T[] => listing.items as readonly T[];

export const modelsQuery = queryOptions({
  queryKey: ["models"],
  queryFn: async ({ signal }) => rows<ModelRow>(await ask(api.GET("/v1/models", { signal }))),
});

export const modelQuery = (name: string) =>
  queryOptions({
    queryKey: ["model", name],
    queryFn: ({ signal }) => ask(api.GET("/v1/models/{name}", { params: { path: { name } }, signal })),
  });

export const clustersQuery = queryOptions({
  queryKey: ["clusters"],
  queryFn: async ({ signal }) => rows<ClusterRow>(await ask(api.GET("/v1/clusters", { signal }))),
});

export type BackEndRow = Schemas["BackEndView"];

/** Changes only with a release of the service. */
export const backendsQuery = queryOptions({
  queryKey: ["backends"],
  queryFn: async ({ signal }) => rows<BackEndRow>(await ask(api.GET("/v1/backends", { signal }))),
  staleTime: Number.POSITIVE_INFINITY,
});

export const clusterQuery = (name: string) =>
  queryOptions({
    queryKey: ["cluster", name],
    queryFn: ({ signal }) => ask(api.GET("/v1/clusters/{name}", { params: { path: { name } }, signal })),
  });
