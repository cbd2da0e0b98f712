import type { PlanAnswer } from "../../api/queries/plans";
import { DataTable } from "../../components/DataTable";
import { compact, count, gibibytes, plural, seconds } from "../../lib/format";
import { stageRecompute } from "../../lib/relief";

/** What each pipeline stage holds and takes. */
export function StageTable({ plan }: { plan: PlanAnswer }) {
  return (
    <section>
      <h2>{plural(plan.stages.length, "stage")}</h2>
      <DataTable
        caption="Pipeline stages; times are those of one micro-batch"
        columns={[
          { name: "stage", title: "Stage", cell: (row) => row.stage },
          { name: "layers", title: "Layers", number: true, cell: (row) => count(row.layers) },
          {
            name: "memory",
            title: "Peak memory",
            number: true,
            cell: (row) => gibibytes(row.peak_memory_bytes.total),
          },
          { name: "forward", title: "Forward", number: true, cell: (row) => seconds(row.forward_s) },
          { name: "backward", title: "Backward", number: true, cell: (row) => seconds(row.backward_s) },
          { name: "recompute", title: "Recompute", cell: stageRecompute },
          {
            name: "parameters",
            title: "Parameters a device",
            number: true,
            cell: (row) => compact(row.parameters_per_device),
          },
        ]}
        rows={plan.stages}
        rowKey={(row) => row.stage}
      />
    </section>
  );
}
