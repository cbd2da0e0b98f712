import type { Key, ReactNode } from "react";
import styles from "./DataTable.module.css";

export interface Column<Row> {
  /** Stable name: key of the column, and what a sort in the URL says. */
  readonly name: string;
  readonly title: ReactNode;
  readonly cell: (row: Row) => ReactNode;
  /** Numbers stand flush right. */
  readonly number?: boolean;
  /** Sentences break into lines; everything else stays on one. */
  readonly wraps?: boolean;
  readonly sortable?: boolean;
}

export interface Sort {
  readonly by: string;
  readonly descending: boolean;
}

interface Props<Row> {
  /** What the table shows, in a sentence. */
  caption: string;
  captionHidden?: boolean;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  rowKey: (row: Row) => Key;
  /** The row that the page is about. */
  isCurrent?: (row: Row) => boolean;
  sort?: Sort;
  onSort?: (sort: Sort) => void;
}

/** Rows with the first column as their heading; scrolls sideways by itself, also with keys. */
export function DataTable<Row>(props: Props<Row>) {
  const { caption, captionHidden, columns, rows, rowKey, isCurrent, sort, onSort } = props;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable with keys
    <section className={styles.frame} tabIndex={0} aria-label={caption}>
      <table className={styles.table}>
        <caption className={captionHidden ? "visually-hidden" : undefined}>{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <Heading key={column.name} column={column} sort={sort} onSort={onSort} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)} aria-current={isCurrent?.(row) ? "true" : undefined}>
              {columns.map((column, index) => {
                const Cell = index === 0 ? "th" : "td";
                return (
                  <Cell key={column.name} scope={index === 0 ? "row" : undefined} className={lookOf(column)}>
                    {column.cell(row)}
                  </Cell>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function lookOf<Row>({ number, wraps }: Column<Row>): string | undefined {
  return number ? styles.number : wraps ? styles.wraps : undefined;
}

interface HeadingProps<Row> {
  column: Column<Row>;
  sort: Sort | undefined;
  onSort: ((sort: Sort) => void) | undefined;
}

function Heading<Row>({ column, sort, onSort }: HeadingProps<Row>) {
  const sorted = sort?.by === column.name ? sort : undefined;
  const order = sorted && (sorted.descending ? "descending" : "ascending");
  const mark = sorted && (sorted.descending ? " \u2193" : " \u2191");
  return (
    <th scope="col" aria-sort={order} className={column.number ? styles.number : undefined}>
      {column.sortable && onSort ? (
        <button
          type="button"
          className={styles.sort}
          onClick={() => onSort({ by: column.name, descending: sorted ? !sorted.descending : false })}
        >
          {column.title}
          {mark}
        </button>
      ) : (
        column.title
      )}
    </th>
  );
}
