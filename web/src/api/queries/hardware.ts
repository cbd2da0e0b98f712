/** Clusters, devices and profiles, whole; and what is measured of them. */

import { queryOptions } from "@tanstack/react-query";
import { api, ask, type Schemas } from "../client";
import { staleTimeOf } from "./plans";

export type FitsView = Schemas["FitsView"];
export type TableFit = FitsView["tables"][number];
export type CollectiveFit = FitsView["collectives"][number];
export type LeaningView = Schemas["LeaningView"];

/** The API types a row as an object; these are the fields that planner.answers.summaries writes. */
export interface DeviceRow {
  name: string;
  vendor: string;
  architecture: string;
  memory_bytes: number;
  memory_bandwidth_bytes_per_s: number;
  peak_flops_per_s: Record<string, number>;
}

export interface ProfileRow {
  name: string;
  version: number;
  created_at: string;
}

/** Where a number of a document comes from. */
export interface Source {
  confidence: string;
  source: string;
  note: string;
}

export type Sources = Readonly<Record<string, Source>>;
export type ClusterDocument = Schemas["Cluster"];
export type DeviceDocument = DeviceRow & { num_compute_units?: number | null; provenance: Sources };

const HOUR_MS = 3_600_000;

export const devicesQuery = queryOptions({
  queryKey: ["devices"],
  queryFn: async ({ signal }) =>
    (await ask(api.GET("/v1/devices", { signal }))).items as unknown as readonly DeviceRow[],
  staleTime: HOUR_MS,
});

export const profilesQuery = queryOptions({
  queryKey: ["profiles"],
  queryFn: async ({ signal }) =>
    (await ask(api.GET("/v1/profiles", { signal }))).items as unknown as readonly ProfileRow[],
});

export const clusterQuery = (name: string) =>
  queryOptions({
    queryKey: ["cluster", name],
    queryFn: ({ signal }) => ask(api.GET("/v1/clusters/{name}", { params: { path: { name } }, signal })),
  });

export const deviceQuery = (name: string) =>
  queryOptions({
    queryKey: ["device", name],
    queryFn: async ({ signal }) => {
      const found = await ask(api.GET("/v1/devices/{name}", { params: { path: { name } }, signal }));
      return found as unknown as DeviceDocument;
    },
    staleTime: HOUR_MS,
  });

/** What is measured of a device, or of a profile. */
export const fitsQuery = (kind: "device" | "profile", name: string) =>
  queryOptions({
    queryKey: ["fits", kind, name],
    queryFn: async ({ signal }) => {
      const params = { path: { name } };
      const asked =
        kind === "device"
          ? api.GET("/v1/devices/{name}/fits", { params, signal })
          : api.GET("/v1/profiles/{name}/fits", { params, signal });
      // openapi-fetch turns the pairs of sizes into lists.
      return (await ask<unknown>(asked)) as FitsView;
    },
  });

/** The most lookups that the API tells: all of any plan. */
const ALL_ROWS = 1000;

export const leaningQuery = (plan: string) =>
  queryOptions({
    queryKey: ["plan", plan, "leaning"],
    queryFn: async ({ signal }) => {
      const params = { path: { plan }, query: { rows: ALL_ROWS } };
      return (await ask(api.GET("/v1/plans/{plan}/leaning", { params, signal }))) as unknown as LeaningView;
    },
    staleTime: staleTimeOf(plan),
  });
