import { flag, integer, searchReader } from "../../lib/search";

/** The view state of this tab that its address keeps; -1 = none, or the whole step. */
export const readTimelineSearch = searchReader({
  from_ns: integer(-1, -1),
  to_ns: integer(-1, -1),
  /** The pipeline rank whose memory is shown; -1 = that of the selected action, or the first. */
  rank: integer(-1, -1),
  /** The selected action, as its place in the API's columns. */
  action: integer(-1, -1),
  /** The micro-batch that stands out on all ranks. */
  microbatch: integer(-1, -1),
  critical: flag(),
});
