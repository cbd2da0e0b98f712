import { Children } from "react";
import type { Sources } from "../../api/queries/hardware";
import { DataTable } from "../../components/DataTable";
import styles from "./Clusters.module.css";

/** Where each number comes from, and how much it is trusted. */
export function SourceTable({ sources }: { sources: Sources }) {
  const rows = Object.entries(sources);
  if (rows.length === 0) return <p className={styles.soft}>The document names no sources.</p>;
  return (
    <DataTable
      caption="Where the numbers come from (A vendor, B project, C third party, D unverified)"
      columns={[
        {
          name: "number",
          title: "Number",
          cell: ([field]) => (field === "default" ? "all others" : <code>{field}</code>),
        },
        { name: "confidence", title: "Trust", cell: ([, source]) => source.confidence },
        {
          name: "source",
          title: "Source",
          cell: ([, source]) => (
            <span className={styles.source}>
              <Linked text={source.source} />
              {source.note && <span className={styles.soft}> ({source.note})</span>}
            </span>
          ),
        },
      ]}
      rows={rows}
      rowKey={([field]) => field}
    />
  );
}

/** Addresses in a text become links. */
function Linked({ text }: { text: string }) {
  const parts = text.split(/(https?:\/\/[^\s;]+)/);
  const nodes = parts.map((part) =>
    part.startsWith("http") ? (
      // biome-ignore lint/correctness/useJsxKeyInIterable: Children.toArray gives the keys, also to equal addresses
      <a href={part} rel="noreferrer">
        {part.replace(/^https?:\/\//, "")}
      </a>
    ) : (
      part
    ),
  );
  return Children.toArray(nodes);
}
