import { searchReader } from "../lib/search";

/** The view state of this screen that its address keeps. */
export const readClustersSearch = searchReader({});
