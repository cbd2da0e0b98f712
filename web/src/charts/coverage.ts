/** How much is measured of each size?  A grid: one row for a table, one column for each doubling of its size. */

export interface CoverageCell {
  readonly octave: number;
  readonly measured: number;
  readonly filled_in: number;
}

export interface CoverageRow {
  readonly name: string;
  readonly cells: readonly CoverageCell[];
}

export interface DrawnCell extends CoverageCell {
  readonly x: number;
  readonly y: number;
  /** Part of the points of this size that are measured, 0 to 1. */
  readonly share: number;
}

export const COVERAGE_ROW_PX = 28;
export const COVERAGE_FOOT_PX = 36;

/** Every cell in its place; columns from the smallest octave of any row to the largest. */
export function coverageLayout(rows: readonly CoverageRow[], width: number, names_px: number) {
  const octaves = rows.flatMap((row) => row.cells.map((cell) => cell.octave));
  const [first, last] = [Math.min(...octaves), Math.max(...octaves)];
  const columns = octaves.length > 0 ? last - first + 1 : 0;
  const cell_px = columns > 0 ? Math.min(64, (width - names_px) / columns) : 0;
  const cells: readonly DrawnCell[] = rows.flatMap((row, index) =>
    row.cells.map((cell) => ({
      ...cell,
      x: names_px + (cell.octave - first) * cell_px,
      y: index * COVERAGE_ROW_PX,
      share: cell.measured / Math.max(1, cell.measured + cell.filled_in),
    })),
  );
  return { cells, cell_px, first, columns, height: rows.length * COVERAGE_ROW_PX + COVERAGE_FOOT_PX };
}

/** Strength of the colour: four steps are told apart, seven are not. */
export function coverageStep(share: number): 0 | 1 | 2 | 3 {
  if (share <= 0) return 0;
  return share < 0.34 ? 1 : share < 0.99 ? 2 : 3;
}
