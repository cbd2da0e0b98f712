import { flag, searchReader } from "../lib/search";

/** follow: go to the plan as soon as there is one. */
export const readJobSearch = searchReader({ follow: flag() });
