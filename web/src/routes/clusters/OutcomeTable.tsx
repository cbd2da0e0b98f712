import type { FileOutcome } from "../../api/queries/uploads";
import { type Column, DataTable } from "../../components/DataTable";
import { plural } from "../../lib/format";
import styles from "./Clusters.module.css";
import { contentWords, remarks } from "./outcomes";

const COLUMNS: readonly Column<FileOutcome>[] = [
  {
    name: "file",
    title: "File",
    cell: (row) => (
      <span className={styles.file}>
        {row.name}
        {row.positions.length > 1 && `, read with ${plural(row.positions.length - 1, "other")}`}
      </span>
    ),
  },
  { name: "status", title: "Becomes", cell: (row) => row.status },
  { name: "format", title: "Format", cell: (row) => row.title ?? "" },
  { name: "content", title: "Holds", cell: contentWords },
  {
    name: "device",
    title: "Device",
    cell: (row) => row.devices.map((each) => each || "not said").join(", "),
  },
];

interface Props {
  files: readonly FileOutcome[];
  caption: string;
}

/** What each file holds, what becomes of it, and what to mind. */
export function OutcomeTable({ files, caption }: Props) {
  const told = files.flatMap((each) => remarks(each).map((remark) => ({ name: each.name, remark })));
  return (
    <>
      <DataTable caption={caption} columns={COLUMNS} rows={files} rowKey={(row) => row.positions.join(" ")} />
      {told.length > 0 && (
        <section className={styles.remarks}>
          <h3>Mind</h3>
          <ul>
            {told.map(({ name, remark }) => (
              <li key={`${name} ${remark}`}>
                {name}: {remark}
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}
