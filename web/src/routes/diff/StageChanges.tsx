import type { PlanDiff } from "../../api/queries/variants";
import { DataTable } from "../../components/DataTable";
import { gibibytes, NONE, plural } from "../../lib/format";

/** Pipeline stages that are not the same on both sides. */
export function StageChanges({ stages }: { stages: PlanDiff["stages"] }) {
  if (stages.length === 0) return null;
  const both = (
    pair: readonly (string | number | null)[],
    write = (value: string | number) => String(value),
  ) => {
    const [a, b] = pair.map((each) => (each === null ? NONE : write(each)));
    return a === b ? a : `${a} \u2192 ${b}`;
  };
  return (
    <DataTable
      caption={`${plural(stages.length, "stage differs", "stages differ")}, a \u2192 b`}
      columns={[
        { name: "stage", title: "Stage", cell: (row) => row.stage },
        { name: "layers", title: "Layers", cell: (row) => both(row.layers) },
        {
          name: "memory",
          title: "Peak memory",
          cell: (row) => both(row.peak_memory_bytes, (value) => gibibytes(Number(value))),
        },
        { name: "recompute", title: "Recompute", cell: (row) => both(row.recompute) },
        { name: "offload", title: "Offload", cell: (row) => both(row.offload) },
      ]}
      rows={stages}
      rowKey={(row) => row.stage}
    />
  );
}
