import { DataTable } from "../../../components/DataTable";
import { count, gibibytes } from "../../../lib/format";
import { type MemoryStage, type MemoryView, memoryPieces, totalOf } from "./stages";

interface Props {
  view: MemoryView;
  stages: readonly MemoryStage[];
}

/** The numbers behind the bars. */
export function MemoryTable({ view, stages }: Props) {
  const parts = stages[0] ? memoryPieces(stages[0]) : [];
  return (
    <DataTable
      caption={`Peak memory of every stage; ${gibibytes(view.limit_bytes)} may be used`}
      columns={[
        { name: "stage", title: "Stage", cell: (row) => row.stage },
        { name: "layers", title: "Layers", number: true, cell: (row) => count(row.layers) },
        ...parts.map((part) => ({
          name: part.name,
          title: part.look.label,
          number: true,
          cell: (row: MemoryStage) => gibibytes(row.peak_memory_bytes[part.name]),
        })),
        { name: "total", title: "Together", number: true, cell: (row) => gibibytes(totalOf(row)) },
        { name: "spare", title: "Free", number: true, cell: (row) => gibibytes(row.spare_bytes) },
        { name: "recompute", title: "Recompute", cell: (row) => String(row.recompute.policy ?? "none") },
      ]}
      rows={stages}
      rowKey={(row) => row.stage}
    />
  );
}
