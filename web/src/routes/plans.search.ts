import { searchReader, text } from "../lib/search";

/** Which plans are listed; `after` is the last plan of the page before. */
export const readPlansSearch = searchReader({
  model: text(),
  cluster: text(),
  backend: text(),
  problem: text(),
  after: text(),
});
