import { type Column, DataTable } from "../../components/DataTable";
import { change, count, percent } from "../../lib/format";
import { type AccuracyState, AXES } from "../accuracy.search";
import styles from "./Accuracy.module.css";
import { type Group, groupsOf, keyOf, type Report, sortedGroups, type TimedRun } from "./runs";

interface Props {
  report: Report;
  runs: readonly TimedRun[];
  wanted: AccuracyState;
  onChange: (part: Partial<AccuracyState>) => void;
}

/** The errors by source, device or model; a press on a name shows these runs alone. */
export function GroupTable({ report, runs, wanted, onChange }: Props) {
  const groups = sortedGroups(groupsOf(runs, keyOf(report, wanted.by)), wanted.sort, wanted.descending);
  const number = (
    name: AccuracyState["sort"],
    title: string,
    cell: (row: Group) => string,
  ): Column<Group> => ({
    name,
    title,
    cell,
    number: true,
    sortable: true,
  });
  const columns: Column<Group>[] = [
    {
      name: "group",
      title: wanted.by[0]?.toUpperCase() + wanted.by.slice(1),
      sortable: true,
      cell: (row) => (
        <button type="button" className={styles.name} onClick={() => onChange({ [wanted.by]: row.group })}>
          {row.group}
        </button>
      ),
    },
    number("n", "Runs", (row) => count(row.n)),
    number("median", "Median error", (row) => percent(row.median)),
    number("p90", "90 % within", (row) => percent(row.p90)),
    number("mean", "Mean error", (row) => percent(row.mean)),
    number("bias", "Bias", (row) => change(row.bias)),
    number("inside", "In interval", (row) => percent(row.inside, 0)),
  ];
  return (
    <section className={styles.groups}>
      <h2>Errors of the step time by {wanted.by}</h2>
      <fieldset className={styles.axes}>
        <legend className="visually-hidden">What a line stands for</legend>
        {AXES.map((axis) => (
          <label key={axis}>
            <input
              type="radio"
              name="by"
              checked={wanted.by === axis}
              onChange={() => onChange({ by: axis })}
            />{" "}
            by {axis}
          </label>
        ))}
      </fieldset>
      <DataTable
        caption={`Errors of the step time by ${wanted.by}`}
        captionHidden
        columns={columns}
        rows={groups}
        rowKey={(row) => row.group}
        sort={{ by: wanted.sort, descending: wanted.descending }}
        onSort={({ by, descending }) => onChange({ sort: by as AccuracyState["sort"], descending })}
      />
    </section>
  );
}
