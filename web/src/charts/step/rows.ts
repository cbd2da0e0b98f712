/** Where do the rows of the ranks lie?  Each has a track of compute and, below it, a thin one of what it sends. */

export interface Rows {
  readonly count: number;
  readonly row_px: number;
  readonly compute_px: number;
  readonly send_px: number;
  readonly height: number;
}

const GAP_PX = 2;

/** High rows for few ranks; never so low that a row cannot be pressed. */
export function rowsOf(num_ranks: number): Rows {
  const row_px = num_ranks <= 4 ? 48 : num_ranks <= 8 ? 36 : num_ranks <= 16 ? 30 : 24;
  const send_px = row_px >= 36 ? 6 : 4;
  return {
    count: num_ranks,
    row_px,
    compute_px: row_px - send_px - 2 * GAP_PX,
    send_px,
    height: num_ranks * row_px,
  };
}

export function topOf(rows: Rows, rank: number): number {
  return rank * rows.row_px + GAP_PX;
}

export function sendTopOf(rows: Rows, rank: number): number {
  return topOf(rows, rank) + rows.compute_px;
}

/** The rank at a height, and whether it is its track of transfers; undefined outside. */
export function rowAt(rows: Rows, y: number): { rank: number; sends: boolean } | undefined {
  const rank = Math.floor(y / rows.row_px);
  if (rank < 0 || rank >= rows.count) return undefined;
  return { rank, sends: y >= sendTopOf(rows, rank) };
}
