import type { TableFit } from "../../api/queries/hardware";
import { CoverageMap } from "../../charts/CoverageMap";
import type { CoverageRow } from "../../charts/coverage";
import { ChartFigure } from "../../components/ChartFigure";
import { DataTable } from "../../components/DataTable";
import { bytes, count } from "../../lib/format";
import { useWidth } from "../../lib/size";
import styles from "./Clusters.module.css";
import { coverageByAxis, coverageSentence } from "./coverageRows";

/** How much of each table is measured, by size. */
export function CoverageFigure({ tables }: { tables: readonly TableFit[] }) {
  return [...coverageByAxis(tables)].map(([axis, rows]) => <AxisFigure key={axis} axis={axis} rows={rows} />);
}

function AxisFigure({ axis, rows }: { axis: string; rows: readonly CoverageRow[] }) {
  const { ref, width } = useWidth<HTMLDivElement>();
  const octaveName = (octave: number) =>
    axis.endsWith("bytes") ? bytes(2 ** octave, 1) : count(2 ** octave);
  const sentence = coverageSentence(rows, axis);
  const cells = rows.flatMap((row) => row.cells.map((cell) => ({ ...cell, name: row.name })));
  return (
    <ChartFigure
      title={`Measured points by ${axis.replaceAll("_", " ")}`}
      sentence={sentence}
      table={() => (
        <DataTable
          caption="Points by table and size"
          captionHidden
          columns={[
            { name: "table", title: "Table", cell: (row) => row.name },
            {
              name: "size",
              title: axis.replaceAll("_", " "),
              number: true,
              cell: (row) => `${octaveName(row.octave)} to ${octaveName(row.octave + 1)}`,
            },
            { name: "measured", title: "Measured", number: true, cell: (row) => count(row.measured) },
            { name: "filled", title: "Filled in", number: true, cell: (row) => count(row.filled_in) },
          ]}
          rows={cells}
          rowKey={(row) => `${row.name} ${row.octave}`}
        />
      )}
    >
      <div ref={ref}>
        {width > 0 && <CoverageMap rows={rows} octaveName={octaveName} width={width} sentence={sentence} />}
      </div>
      <p className={styles.soft}>
        Numbers: measured points. Full: all of the grid; lighter: a part; hatched: none, filled in; empty: no
        such size in the table.
      </p>
    </ChartFigure>
  );
}
