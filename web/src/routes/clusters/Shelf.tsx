import { type ReactNode, useEffect, useRef } from "react";
import { type Column, DataTable } from "../../components/DataTable";
import { useKeys } from "../../lib/keys";
import type { ClustersSearch } from "../clusters.search";
import styles from "./Clusters.module.css";

/** What each shelf is given. */
export interface ShelfProps {
  search: ClustersSearch;
  write: (part: Partial<ClustersSearch>) => void;
}

interface Props<Row extends { readonly name: string }> {
  /** What a row is called: cluster, device, profile. */
  noun: string;
  /** Under what the list of keys names its keys. */
  group?: string;
  caption: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  chosen: string;
  onChoose: (name: string) => void;
  children: ReactNode;
}

/** Rows to choose from, and what is known of the chosen one beside them. */
export function Shelf<Row extends { readonly name: string }>(props: Props<Row>) {
  const { noun, group = "Clusters & profiles", caption, rows, columns, chosen, onChoose, children } = props;
  const list = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the choice decides which button is pressed
  useEffect(() => {
    list.current?.querySelector('[aria-pressed="true"]')?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  const walk = (step: number) => {
    const at = rows.findIndex((each) => each.name === chosen);
    const next = rows[at < 0 ? 0 : (at + step + rows.length) % rows.length];
    if (next) onChoose(next.name);
  };
  useKeys([
    { keys: "j", does: `Next ${noun}`, group, run: () => walk(1) },
    { keys: "k", does: `Previous ${noun}`, group, run: () => walk(-1) },
  ]);
  const name: Column<Row> = {
    name: "name",
    title: `${noun.charAt(0).toUpperCase()}${noun.slice(1)}`,
    cell: (row) => (
      <button
        type="button"
        className={styles.name}
        aria-pressed={row.name === chosen}
        onClick={() => onChoose(row.name)}
      >
        {row.name}
      </button>
    ),
  };
  return (
    <div className={styles.shelf}>
      <div ref={list} className={styles.list}>
        <DataTable caption={caption} columns={[name, ...columns]} rows={rows} rowKey={(row) => row.name} />
      </div>
      <div className={styles.detail}>
        {chosen ? (
          children
        ) : (
          <p className={styles.soft}>
            Choose a {noun}, or walk with <kbd>j</kbd> and <kbd>k</kbd>.
          </p>
        )}
      </div>
    </div>
  );
}
