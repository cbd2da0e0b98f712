import { flag, searchReader, text } from "../../lib/search";

/** What decides how much of the time the job trains, as it was typed; empty: the usual value. */
export const readGoodputSearch = searchReader({
  storage: text("", 20),
  asynchronous: flag(false),
  rate: text("", 20),
  restart: text("", 20),
  repair: text("", 20),
  spares: text("", 20),
  tokens: text("", 20),
  price: text("", 20),
});
