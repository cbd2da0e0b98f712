import { Link } from "@tanstack/react-router";
import { type Column, DataTable } from "../../components/DataTable";
import { Empty } from "../../components/Empty";
import { backendWords } from "../../lib/backends";
import { compact, count, dollars, gibibytes, percent, seconds } from "../../lib/format";
import { strategyParts } from "../plan/strategy";
import styles from "./Compare.module.css";
import { budgetOf, type Row, verdict } from "./curves";

interface Props {
  rows: readonly Row[];
  /** To train; undefined = not said. */
  tokens: number | undefined;
  selected: string;
  onSelect: (id: string) => void;
}

/** Every point with its plan, or with the reason why it has none. */
export function CompareTable({ rows, tokens, selected, onSelect }: Props) {
  if (rows.length === 0) return <Empty title="Nothing is planned yet" />;
  const columns: readonly Column<Row>[] = [
    {
      name: "point",
      title: "Cluster",
      cell: (row) => (
        <button
          type="button"
          className={styles.point}
          aria-pressed={row.id === selected}
          onClick={() => onSelect(row.id === selected ? "" : row.id)}
        >
          {row.cluster} × {count(row.point.num_devices)}
        </button>
      ),
    },
    { name: "verdict", title: "Proof", cell: ({ point }) => verdict(point) },
    {
      name: "backend",
      title: "Back-end",
      cell: ({ point }) => backendWords(point.backend ?? "", point.release ?? ""),
    },
    { name: "step", title: "Step time", number: true, cell: ({ point }) => seconds(point.step_time_s) },
    { name: "tokens", title: "Tokens/s", number: true, cell: ({ point }) => compact(point.tokens_per_s) },
    {
      name: "each",
      title: "a device",
      number: true,
      cell: ({ point }) => compact(point.tokens_per_s_per_device),
    },
    { name: "mfu", title: "MFU", number: true, cell: ({ point }) => percent(point.model_flops_utilization) },
    {
      name: "cost",
      title: "A million tokens",
      number: true,
      cell: ({ point }) => dollars(point.cost_per_million_tokens),
    },
    ...(tokens === undefined ? [] : budgetColumns(tokens)),
    {
      name: "memory",
      title: "Memory",
      number: true,
      cell: ({ point }) => gibibytes(point.peak_memory_bytes),
    },
    { name: "plan", title: "Plan, or why none", cell: ({ point }) => <PlanOrReason point={point} /> },
  ];
  return (
    <DataTable
      caption="The fastest plan found on each cluster and device count"
      columns={columns}
      rows={rows}
      rowKey={(row) => row.id}
    />
  );
}

/** Whole days, parts of them where there are few; whole dollars of what costs thousands. */
const days = (value: number | undefined) =>
  value === undefined || value < 100 ? compact(value, 3) : count(value);
const money = (value: number | undefined) =>
  value === undefined || value < 1000 ? dollars(value) : `$${count(value)}`;

function budgetColumns(tokens: number): readonly Column<Row>[] {
  return [
    {
      name: "days",
      title: "Days",
      number: true,
      cell: ({ point }) => days(budgetOf(point, tokens).days),
    },
    {
      name: "money",
      title: "All tokens",
      number: true,
      cell: ({ point }) => money(budgetOf(point, tokens).cost),
    },
  ];
}

function PlanOrReason({ point }: { point: Row["point"] }) {
  if (!point.plan_id) return <span className={styles.reason}>{point.reason}</span>;
  const words = strategyParts(point.strategy ?? {})
    .slice(0, 3)
    .map((part) => `${part.name} ${part.value}`)
    .join(", ");
  return (
    <Link to="/plans/$planId" params={{ planId: point.plan_id }}>
      {words}
    </Link>
  );
}
