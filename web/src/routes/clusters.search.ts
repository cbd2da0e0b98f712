import { flag, oneOf, searchReader, text } from "../lib/search";

export const SHELVES = ["clusters", "devices", "profiles"] as const;
export type Shelf = (typeof SHELVES)[number];

/** Which shelf, and what on it is looked at. */
export const readClustersSearch = searchReader({
  show: oneOf(SHELVES, "clusters"),
  cluster: text(),
  device: text(),
  profile: text(),
  /** A curve of collectives: `all_reduce-8-1`. */
  curve: text(),
  /** The form that imports logs: whether it is open, and what is said about the files. */
  logs: flag(),
  measured: text(),
  facts: text(),
  format: text(),
  keepGoing: flag(),
});

export type ClustersSearch = ReturnType<typeof readClustersSearch.full>;
