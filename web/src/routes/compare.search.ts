import { integer, oneOf, searchReader, text, texts } from "../lib/search";
import { PRECISIONS } from "./new-plan.search";

export const MOST_CLUSTERS = 6;

/** The question as it is typed, and the point that is looked at (`dgx-h100 64`). */
export const readCompareSearch = searchReader({
  model: text("llama-3.1-70b"),
  batch: text("512"),
  seq: text("8192"),
  precision: oneOf(PRECISIONS, "bf16"),
  /** None = the two that everybody knows. */
  clusters: texts(MOST_CLUSTERS),
  /** `dgx-h100=2.5`: price of a device-hour. */
  prices: texts(MOST_CLUSTERS),
  /** As on the page of a new plan. */
  backend: text(),
  /** How many are to be trained: gives days and money. */
  tokens: text("", 20),
  counts: text("8,16,32,64,128,256"),
  /** Seconds that each cluster may take. */
  budget: integer(10, 1, 60),
  point: text(),
});

export type CompareSearch = ReturnType<typeof readCompareSearch.full>;
