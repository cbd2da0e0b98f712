/** What is each axis called, and which of the payload is its own? */

import type { MapAxis, MeshView } from "../../../api/queries/mesh";

const TITLES: Readonly<Record<string, string>> = {
  tp: "Tensor",
  cp: "Context",
  dp_cp: "Data",
  pp: "Pipeline",
  etp: "Expert tensor",
  ep: "Expert",
  edp: "Expert data",
};

export const titleOf = (axis: string): string => TITLES[axis] ?? axis;

/** The axis that the address names, else the first with groups of two or more. */
export function chosenAxis(view: MeshView, name: string): MapAxis | undefined {
  return (
    view.axes.find((each) => each.axis === name) ??
    view.axes.find((each) => each.group_size > 1) ??
    view.axes[0]
  );
}

/** What a rank sends for an axis; data parallel groups send as their two factors. */
export function trafficOf(view: MeshView, axis: string): MeshView["traffic"] {
  const parts: Readonly<Record<string, readonly string[]>> = {
    dp_cp: ["dp_shard", "dp_replicate"],
    edp: ["edp_shard", "edp_replicate"],
  };
  return view.traffic.filter((each) => (parts[axis] ?? [axis]).includes(each.axis));
}

/** Nested boxes of the map: node, scale-up domain, and the tiers of the fabric. */
export function boxesOf(view: MeshView): readonly { name: string; size: number }[] {
  const tiers = view.levels.map((level) => ({
    name: level.name === "scale_up" ? "domain" : level.name,
    size: level.devices_per_group,
  }));
  return [{ name: "node", size: view.devices_per_node }, ...tiers];
}

export interface Coordinate {
  readonly name: string;
  readonly at: number;
  readonly of: number;
}

/** A rank's coordinates on every digit that has more than one value; pp is the same digit for experts. */
export function coordinatesOf(view: MeshView, rank: number): readonly Coordinate[] {
  const digits = [...view.dense, ...view.expert].filter(
    (digit, index, all) => digit.size > 1 && all.findIndex((each) => each.name === digit.name) === index,
  );
  return digits.map(({ name, size, stride }) => ({ name, at: Math.floor(rank / stride) % size, of: size }));
}

/** [0, 1, 2, 3, 8, 9] -> "0–3, 8–9"; long lists end in "…". */
export function rangesOf(ranks: readonly number[], most = 12): string {
  const runs: [number, number][] = [];
  for (const rank of ranks) {
    const last = runs.at(-1);
    if (last && rank === last[1] + 1) last[1] = rank;
    else runs.push([rank, rank]);
  }
  const shown = runs.slice(0, most).map(([low, high]) => (low === high ? `${low}` : `${low}\u2013${high}`));
  return shown.join(", ") + (runs.length > most ? ", \u2026" : "");
}
