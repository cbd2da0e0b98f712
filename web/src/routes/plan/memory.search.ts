import { integer, oneOf, searchReader } from "../../lib/search";

/** The view state of this tab that its address keeps. */
export const readMemorySearch = searchReader({
  order: oneOf(["stage", "fullest"], "stage"),
  /** The stage whose bill is shown; -1 = the fullest. */
  stage: integer(-1, -1),
});
