/** What do the tables of a profile cover?  Rows of the grid by axis, and the sentence that says it. */

import type { TableFit } from "../../api/queries/hardware";
import type { CoverageRow } from "../../charts/coverage";
import { count, percent } from "../../lib/format";

export function tableName(table: TableFit): string {
  return [table.operator.replaceAll("_", " "), table.variant, table.dtype].filter(Boolean).join(" ");
}

/** Axis -> its tables: rows of m (matrix products) are not compared with bytes that are moved. */
export function coverageByAxis(tables: readonly TableFit[]): ReadonlyMap<string, readonly CoverageRow[]> {
  const found = new Map<string, CoverageRow[]>();
  for (const table of tables) {
    const row = { name: tableName(table), cells: table.by_size };
    found.set(table.axis, [...(found.get(table.axis) ?? []), row]);
  }
  return found;
}

export function coverageSentence(rows: readonly CoverageRow[], axis: string): string {
  const cells = rows.flatMap((row) => row.cells);
  const sum = (pick: (cell: (typeof cells)[number]) => number) =>
    cells.reduce((total, each) => total + pick(each), 0);
  const measured = sum((each) => each.measured);
  const all = measured + sum((each) => each.filled_in);
  const [best] = [...rows].sort((a, b) => shareOf(b) - shareOf(a));
  const of = best && rows.length > 1 ? ` ${best.name} is covered best.` : "";
  return `By ${axis.replaceAll("_", " ")}: ${count(measured)} of ${count(all)} points of the grid are measured (${percent(measured / Math.max(1, all), 0)}), the others are filled in.${of}`;
}

function shareOf(row: CoverageRow): number {
  const measured = row.cells.reduce((sum, each) => sum + each.measured, 0);
  const all = measured + row.cells.reduce((sum, each) => sum + each.filled_in, 0);
  return measured / Math.max(1, all);
}
