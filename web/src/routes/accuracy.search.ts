import { flag, oneOf, searchReader, text } from "../lib/search";

/** The report of every release. */
export const PUBLISHED = "published";
export const AXES = ["source", "device", "model"] as const;
export type Axis = (typeof AXES)[number];
export const GROUP_SORTS = ["group", "n", "median", "p90", "mean", "bias", "inside"] as const;

/** The view state of this screen that its address keeps. */
export const readAccuracySearch = searchReader({
  report: text(PUBLISHED),
  source: text(),
  device: text(),
  model: text(),
  /** Those that chose constants of the cost model, instead of those that judge it. */
  fitted: flag(),
  /** What a line of the table stands for. */
  by: oneOf(AXES, "source"),
  sort: oneOf(GROUP_SORTS, "n"),
  descending: flag(true),
  /** Id of the run whose figures are shown. */
  run: text(),
});

export type AccuracyState = ReturnType<typeof readAccuracySearch.full>;
