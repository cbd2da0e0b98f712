import { searchReader, text } from "../lib/search";

/** The stored answer that is shown; empty: none yet. */
export const readFleetSearch = searchReader({ answer: text("", 64) });
