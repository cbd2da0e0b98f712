import { Link } from "@tanstack/react-router";
import { DataTable } from "../../../components/DataTable";
import { gibibytes, percent, plural } from "../../../lib/format";
import styles from "./Memory.module.css";
import {
  type MemoryStage,
  type MemoryView,
  memoryPieces,
  offloadWords,
  recomputeWords,
  spareWords,
  totalOf,
} from "./stages";

interface Props {
  planId: string;
  view: MemoryView;
  stage: MemoryStage;
}

/** What one stage holds, item by item, and what was done so that it fits. */
export function StageBill({ planId, view, stage }: Props) {
  const total = totalOf(stage);
  const items = [
    ...memoryPieces(stage).map((each) => ({ name: each.look.label, bytes: each.value })),
    { name: "Together", bytes: total },
  ];
  return (
    <section className={styles.bill} aria-labelledby="bill">
      <h3 id="bill">
        Stage {stage.stage}: {plural(stage.layers, "layer")}, {spareWords(stage.spare_bytes)}
      </h3>
      <DataTable
        caption={`Bill of stage ${stage.stage}, at the peak of its fullest device`}
        captionHidden
        columns={[
          { name: "item", title: "Item", cell: (row) => row.name },
          { name: "size", title: "Size", number: true, cell: (row) => gibibytes(row.bytes) },
          {
            name: "share",
            title: "Of the limit",
            number: true,
            cell: (row) => percent(row.bytes / view.limit_bytes),
          },
        ]}
        rows={items}
        rowKey={(row) => row.name}
      />
      <p>{recomputeWords(stage.recompute)}</p>
      <p>{offloadWords(stage.offload)}</p>
      <p>
        All ranks of a stage are alike: each device of stage {stage.stage} holds this much at most.{" "}
        <Link to="/plans/$planId/timeline" params={{ planId }} search={{ rank: stage.stage }}>
          See it over the step
        </Link>
        .
      </p>
    </section>
  );
}
