import { flag, oneOf, searchReader, text, texts } from "../../lib/search";

export const SORTS = ["step", "memory", "kind", "name"] as const;

/** Which choice is looked at, which are pinned, the order of the table, and the configuration that was asked about. */
export const readAlternativesSearch = searchReader({
  choice: text(),
  pinned: texts(2),
  sort: oneOf(SORTS, "step"),
  down: flag(),
  /** `tp=4,pp=8`: answered by "why not mine?". */
  whyNot: text(),
});

export type AlternativesSearch = ReturnType<typeof readAlternativesSearch.full>;
