import { searchReader } from "../../lib/search";

/** The view state of this tab that its address keeps. */
export const readFilesSearch = searchReader({});
