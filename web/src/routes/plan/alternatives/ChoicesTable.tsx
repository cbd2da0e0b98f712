import { type Column, DataTable } from "../../../components/DataTable";
import { change, gibibytes, NONE, percent, seconds } from "../../../lib/format";
import { SORTS } from "../alternatives.search";
import styles from "./Alternatives.module.css";
import { type Choice, KIND_NAMES } from "./choices";
import type { ChoicesView } from "./useChoices";

interface Props {
  choices: readonly Choice[];
  limit_bytes: number;
  view: ChoicesView;
}

/** Every choice with its figures or its reason; what is chosen here is ringed above, and the other way round. */
export function ChoicesTable({ choices, limit_bytes, view }: Props) {
  const { choice: selected, pinned, sort, down } = view.search;
  const columns: readonly Column<Choice>[] = [
    {
      name: "name",
      title: "Choice",
      sortable: true,
      cell: (row) => (
        <button
          type="button"
          className={styles.choice}
          aria-pressed={row.id === selected}
          onClick={() => view.select(row.id === selected ? "" : row.id)}
        >
          {row.name}
        </button>
      ),
    },
    { name: "kind", title: "What it is", sortable: true, cell: (row) => <Kind choice={row} /> },
    {
      name: "step",
      title: "Step time",
      number: true,
      sortable: true,
      cell: (row) => seconds(row.step_time_s),
    },
    {
      name: "against",
      title: "Against the plan",
      number: true,
      cell: (row) => (row.kind === "plan" ? NONE : change(row.slower_by, 2)),
    },
    {
      name: "memory",
      title: "Peak memory",
      number: true,
      sortable: true,
      cell: (row) => gibibytes(row.peak_memory_bytes),
    },
    {
      name: "share",
      title: "Of the limit",
      number: true,
      cell: (row) => percent(row.peak_memory_bytes === null ? null : row.peak_memory_bytes / limit_bytes),
    },
    {
      name: "pin",
      title: "Pin",
      cell: (row) => (
        <input
          type="checkbox"
          aria-label={`Pin ${row.name}`}
          checked={pinned.includes(row.id)}
          disabled={row.kind === "illegal"}
          onChange={() => view.pin(row.id)}
        />
      ),
    },
  ];
  return (
    <DataTable
      caption="Alternatives; times and memory of moves are estimates, with everything else following"
      columns={columns}
      rows={choices}
      rowKey={(row) => row.id}
      sort={{ by: sort, descending: down }}
      onSort={({ by, descending }) => view.sort(SORTS.find((each) => each === by) ?? "step", descending)}
    />
  );
}

function Kind({ choice }: { choice: Choice }) {
  return (
    <span className={styles.reason}>
      <span className={`${styles.kind} ${choice.fits ? "" : styles.unfit}`}>{KIND_NAMES[choice.kind]}</span>{" "}
      {choice.reason}
    </span>
  );
}
