import type { TableFit } from "../../api/queries/hardware";
import { type Column, DataTable } from "../../components/DataTable";
import { count, percent } from "../../lib/format";
import { tableName } from "./coverageRows";

const COLUMNS: readonly Column<TableFit>[] = [
  { name: "table", title: "Table", cell: tableName },
  {
    name: "points",
    title: "Points",
    number: true,
    cell: (row) => (row.transferred_from ? `from ${row.transferred_from}` : count(row.num_points)),
  },
  { name: "median", title: "Median", number: true, cell: (row) => percent(residual(row)?.median) },
  { name: "p90", title: "9 of 10 within", number: true, cell: (row) => percent(residual(row)?.p90) },
  {
    name: "inside",
    title: "Inside their 80 %",
    number: true,
    cell: (row) => percent(residual(row)?.coverage, 0),
  },
  { name: "at", title: "Spread, measured", number: true, cell: (row) => percent(row.sigma.exact) },
  { name: "between", title: "between", number: true, cell: (row) => percent(row.sigma.bracket) },
  { name: "new", title: "new site", number: true, cell: (row) => percent(row.sigma.unseen_site) },
];

const residual = (table: TableFit) => table.residuals.site_left_out ?? table.residuals.point_left_out;

/** How far measured points are from what the fits say without them. */
export function FitTable({ tables }: { tables: readonly TableFit[] }) {
  return (
    <DataTable
      caption="Errors of the fits: each site predicted from the others, as a part of its measured time"
      columns={COLUMNS}
      rows={tables}
      rowKey={tableName}
    />
  );
}
