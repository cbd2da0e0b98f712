/** What do the answers say about each quantity?  Rows of all clusters, and the curves of one quantity. */

import type { ThroughputPoint } from "../../api/queries/throughput";
import type { Curve } from "../../charts/curves";
import { compact, count, dollars, percent } from "../../lib/format";
import { typedNumber } from "../../lib/typed";

export interface Row {
  /** In the address: `dgx-h100 64`. */
  readonly id: string;
  readonly cluster: string;
  readonly point: ThroughputPoint;
}

export interface Quantity {
  readonly name: "tokens" | "mfu" | "cost";
  readonly title: string;
  readonly logarithmic: boolean;
  readonly ideal?: boolean;
  readonly pick: (point: ThroughputPoint) => number | null | undefined;
  readonly figure: (value: number) => string;
  /** On the axis, where that is shorter. */
  readonly tick?: (value: number) => string;
  readonly best: "most" | "least";
}

export const QUANTITIES: readonly Quantity[] = [
  {
    name: "tokens",
    title: "Tokens per second",
    logarithmic: true,
    ideal: true,
    pick: (point) => point.tokens_per_s,
    figure: compact,
    tick: (value) => compact(value, 1),
    best: "most",
  },
  {
    name: "mfu",
    title: "Model FLOPs utilization",
    logarithmic: false,
    pick: (point) => point.model_flops_utilization,
    figure: (value) => percent(value, 0),
    tick: percent,
    best: "most",
  },
  {
    name: "cost",
    title: "Cost of a million tokens",
    logarithmic: false,
    pick: (point) => point.cost_per_million_tokens,
    figure: dollars,
    best: "least",
  },
];

export function rowsOf(cluster: string, points: readonly ThroughputPoint[]): readonly Row[] {
  return points.map((point) => ({ id: `${cluster} ${point.num_devices}`, cluster, point }));
}

export function curvesOf(
  clusters: readonly string[],
  rows: readonly Row[],
  quantity: Quantity,
): readonly Curve[] {
  return clusters.map((name) => ({
    name,
    points: rows
      .filter((row) => row.cluster === name)
      .map(({ id, point }) => ({
        id,
        x: point.num_devices,
        y: quantity.pick(point) ?? null,
        sure: point.proved ?? false,
        mark:
          point.fits === true
            ? undefined
            : point.fits === false
              ? ("does-not-fit" as const)
              : ("undecided" as const),
      })),
  }));
}

/** What a picture of one quantity says: who is best at the largest count that all were asked for. */
export function curvesSentence(rows: readonly Row[], quantity: Quantity): string {
  const known = rows.flatMap((row) => {
    const value = quantity.pick(row.point);
    return value == null ? [] : [{ row, value }];
  });
  const sign = quantity.best === "most" ? -1 : 1;
  const [best] = [...known].sort((a, b) => sign * (a.value - b.value));
  if (!best) return "Nothing is known yet.";
  const { point, cluster } = best.row;
  const value = quantity.figure(best.value);
  const text = `${quantity.best === "most" ? "Highest" : "Lowest"}: ${value} on ${count(point.num_devices)} devices of ${cluster}.`;
  return quantity.ideal ? `${text} ${efficiencySentence(rows)}`.trim() : text;
}

/** How much of ideal scaling is kept from the smallest known count to the largest, for each cluster. */
function efficiencySentence(rows: readonly Row[]): string {
  const clusters = [...new Set(rows.map((row) => row.cluster))];
  const parts = clusters.flatMap((name) => {
    const known = rows.filter((row) => row.cluster === name && row.point.tokens_per_s_per_device != null);
    const [first, last] = [known[0]?.point, known.at(-1)?.point];
    if (!first || !last || first === last) return [];
    const kept = (last.tokens_per_s_per_device ?? 0) / (first.tokens_per_s_per_device ?? 1);
    return [
      `${name} keeps ${percent(kept, 0)} from ${count(first.num_devices)} to ${count(last.num_devices)}`,
    ];
  });
  return parts.length > 0 ? `Of ideal scaling ${parts.join("; ")}.` : "";
}

/** "15e12" -> 15,000,000,000,000; nothing for what is no number above 0. */
export function tokensOf(text: string): number | undefined {
  const value = typedNumber(text);
  return typeof value === "number" && value > 0 ? value : undefined;
}

const DAY_S = 86_400;

/** Days of steps without a failure, and what they cost. */
export function budgetOf(
  { tokens_per_s, cost_per_million_tokens }: ThroughputPoint,
  tokens: number,
): { readonly days: number | undefined; readonly cost: number | undefined } {
  return {
    days: tokens_per_s == null ? undefined : tokens / tokens_per_s / DAY_S,
    cost: cost_per_million_tokens == null ? undefined : (tokens / 1e6) * cost_per_million_tokens,
  };
}

/** Whether a row could be had, in words. */
export function verdict(point: ThroughputPoint): string {
  if (point.fits === false) return "Does not fit";
  if (point.fits !== true) return "Undecided";
  return point.proved ? "Proved best" : `Within ${percent(point.gap)} of the bound`;
}
