import type { FileOutcome } from "../../api/queries/uploads";
import { type Column, DataTable } from "../../components/DataTable";
import { FindingList } from "../../components/Field";
import styles from "./Clusters.module.css";
import { contentWords, remarks } from "./outcomes";

const COLUMNS: readonly Column<FileOutcome>[] = [
  {
    name: "file",
    title: "File",
    cell: (row) => (
      <span className={styles.file}>
        {row.name}
        {row.positions.length > 1 && ` and ${row.positions.length - 1} more`}
      </span>
    ),
  },
  { name: "status", title: "Becomes", cell: (row) => row.status },
  { name: "format", title: "Format", cell: (row) => row.title ?? "none" },
  { name: "content", title: "Holds", cell: contentWords },
  { name: "device", title: "Device", cell: (row) => row.devices.filter(Boolean).join(", ") || "not said" },
  {
    name: "mind",
    title: "Mind",
    cell: (row) => (
      <div className={styles.remarks}>
        <FindingList findings={row.findings} />
        {remarks(row).map((remark) => (
          <p key={remark}>{remark}</p>
        ))}
      </div>
    ),
  },
];

/** What each file holds, and what becomes of it. */
export function OutcomeTable({ files, caption }: { files: readonly FileOutcome[]; caption: string }) {
  return (
    <DataTable caption={caption} columns={COLUMNS} rows={files} rowKey={(row) => row.positions.join(" ")} />
  );
}
