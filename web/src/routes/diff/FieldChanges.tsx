import type { ReactNode } from "react";
import type { Schemas } from "../../api/client";
import { type Column, DataTable } from "../../components/DataTable";
import { NONE } from "../../lib/format";

type FieldChange = Schemas["FieldChange"];

interface Props {
  changes: readonly FieldChange[];
  caption: string;
  a: string;
  b: string;
  more?: readonly Column<FieldChange>[];
}

/** Fields whose values differ; nothing that is the same. */
export function FieldChanges({ changes, caption, a, b, more = [] }: Props) {
  if (changes.length === 0) return null;
  return (
    <DataTable
      caption={caption}
      columns={[
        { name: "field", title: "Field", cell: (row) => <code>{row.field}</code> },
        { name: "a", title: a, cell: (row) => valueWords(row.a) },
        { name: "b", title: b, cell: (row) => valueWords(row.b) },
        ...more,
      ]}
      rows={changes}
      rowKey={(row) => row.field}
    />
  );
}

/** A value of a strategy or of a question as a person writes it. */
export function valueWords(value: unknown): ReactNode {
  if (value === null || value === undefined) return NONE;
  if (Array.isArray(value)) return value.map(String).join(" + ") || "none";
  if (typeof value === "boolean") return value ? "on" : "off";
  return typeof value === "object" ? <code>{JSON.stringify(value)}</code> : String(value);
}
