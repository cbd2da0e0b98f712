import { integer, numeric, searchReader, text } from "../../lib/search";

/** The axis looked at (empty = the first that has groups), the selected rank (-1 = none), and the part of the map. */
export const readMeshSearch = searchReader({
  axis: text("", 20),
  rank: integer(-1, -1),
  zoom: numeric(1, 1, 10_000),
  x: numeric(0.5, 0, 1),
  y: numeric(0.5, 0, 1),
});
