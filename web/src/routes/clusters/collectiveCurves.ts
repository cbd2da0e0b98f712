/** How are curves of collectives named, grouped and told? */

import type { CollectiveFit } from "../../api/queries/hardware";
import type { BandwidthCurve, PointPlace } from "../../charts/bandwidth";
import { bandwidth, bytes, count, percent, plural, seconds } from "../../lib/format";

/** In the address: `all_reduce-16-2`. */
export function curveId(each: CollectiveFit): string {
  const shape = `${each.operation}-${each.group_size}-${each.num_nodes}`;
  return each.concurrent ? `${shape}-concurrent` : shape;
}

/** The group shape: "16 on 2 nodes". */
export function groupName(each: CollectiveFit): string {
  const where = each.num_nodes > 1 ? `on ${count(each.num_nodes)} nodes` : "in a node";
  return `${count(each.group_size)} ${where}${each.concurrent ? ", all at once" : ""}`;
}

/** Operation -> its curves, in the API's order. */
export function byOperation(
  collectives: readonly CollectiveFit[],
): ReadonlyMap<string, readonly CollectiveFit[]> {
  const members = new Map<string, CollectiveFit[]>();
  for (const each of collectives) members.set(each.operation, [...(members.get(each.operation) ?? []), each]);
  return members;
}

export function drawnCurve(each: CollectiveFit): BandwidthCurve {
  const { sizes_bytes, bus_bandwidths_bytes_per_s } = each.points;
  return {
    id: curveId(each),
    points: sizes_bytes.map((size, place) => ({
      bytes: size,
      bandwidth_bytes_per_s: bus_bandwidths_bytes_per_s[place] ?? 0,
    })),
    factor: each.sigma.factor_80,
  };
}

export interface PointRow {
  readonly curve: CollectiveFit;
  readonly place: number;
}

export function pointRows(curves: readonly CollectiveFit[]): readonly PointRow[] {
  return curves.flatMap((curve) => curve.points.sizes_bytes.map((_, place) => ({ curve, place })));
}

export function operationSentence(operation: string, curves: readonly CollectiveFit[]): string {
  const fastest = curves.reduce((best, each) =>
    each.largest_bus_bandwidth_bytes_per_s > best.largest_bus_bandwidth_bytes_per_s ? each : best,
  );
  return `${plural(curves.length, "curve")} of ${operation}; the most bus bandwidth is ${bandwidth(fastest.largest_bus_bandwidth_bytes_per_s)}, of ${groupName(fastest)}.`;
}

export function curveSentence(each: CollectiveFit): string {
  return `${groupName(each)}: ${plural(each.num_sizes, "size")}, the smallest takes ${seconds(each.latency_s, 3)}, at most ${bandwidth(each.largest_bus_bandwidth_bytes_per_s)}. Between sizes the time is within ${percent(each.sigma.factor_80 - 1)} in 8 of 10 cases (shaded).`;
}

export function pointSentence(curves: readonly CollectiveFit[], at: PointPlace): string {
  const curve = curves[at.curve];
  if (!curve) return "";
  const { sizes_bytes, times_s, bus_bandwidths_bytes_per_s } = curve.points;
  return `${groupName(curve)}, ${bytes(sizes_bytes[at.point], 3)}: ${seconds(times_s[at.point], 3)}, ${bandwidth(bus_bandwidths_bytes_per_s[at.point])}`;
}
