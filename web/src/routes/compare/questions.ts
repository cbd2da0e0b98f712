/** Which requests does the typed comparison mean?  One for each cluster, so that each has its own price and budget. */

import type { ThroughputQuestion } from "../../api/queries/throughput";
import { namesIn } from "../../lib/backends";
import { typedNumber } from "../../lib/typed";
import type { CompareSearch } from "../compare.search";

export const FIRST_CLUSTERS: readonly string[] = ["dgx-h100", "dgx-a100-80g"];

export function clustersOf(search: Pick<CompareSearch, "clusters">): readonly string[] {
  return search.clusters.length > 0 ? search.clusters : FIRST_CLUSTERS;
}

/** "8, 16 32" -> [8, 16, 32]; what is no number goes as it is, and is refused. */
export function countsOf(text: string): readonly number[] {
  const counts = text.split(/[\s,;]+/).flatMap((each) => typedNumber(each) ?? []);
  return [...new Set(counts)].sort((a, b) => a - b);
}

/** ["dgx-h100=2.5"] -> {"dgx-h100": "2.5"}, as typed. */
export function pricesOf(search: Pick<CompareSearch, "prices">): Readonly<Record<string, string>> {
  return Object.fromEntries(
    search.prices.map((each) => {
      const at = each.lastIndexOf("=");
      return [each.slice(0, at), each.slice(at + 1)];
    }),
  );
}

export function withPrice(search: CompareSearch, cluster: string, price: string): readonly string[] {
  const prices = { ...pricesOf(search), [cluster]: price };
  return Object.entries(prices).flatMap(([name, value]) => (value.trim() ? [`${name}=${value}`] : []));
}

export function questionsOf(
  search: Omit<CompareSearch, "point" | "tokens">,
): readonly { cluster: string; body: ThroughputQuestion }[] {
  const prices = pricesOf(search);
  return clustersOf(search).map((cluster) => {
    const body = {
      model: search.model,
      cluster,
      device_counts: countsOf(search.counts),
      workload: {
        global_batch_size: typedNumber(search.batch),
        sequence_length: typedNumber(search.seq),
        precision: search.precision,
      },
      constraints: { backends: namesIn(search.backend) },
      price_per_device_hour: typedNumber(prices[cluster] ?? ""),
      budget_s: search.budget,
    };
    // The server fills in what is absent; the types of the document name defaults as present.
    return { cluster, body: body as unknown as ThroughputQuestion };
  });
}
