import { useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { type PlanSummary, plansQuery } from "../api/queries/plans";
import { type Column, DataTable, type Sort } from "../components/DataTable";
import { Empty } from "../components/Empty";
import { Loading } from "../components/Loading";
import { PageHead } from "../components/PageHead";
import { ProblemNotice } from "../components/ProblemNotice";
import { backendWords } from "../lib/backends";
import { chance, compact, count, dollars, gibibytes, moment, percent, seconds, shortId } from "../lib/format";
import { strategyWords } from "./plan/strategy";
import { Chosen } from "./plans/Chosen";
import { chosenWith, NEWEST_FIRST, sortedPlans } from "./plans/order";
import { PlanFilters } from "./plans/PlanFilters";
import styles from "./plans/Plans.module.css";
import { readPlansSearch } from "./plans.search";

/** What is proved of a stored plan, in a word. */
const PROOFS: Readonly<Record<string, string>> = { optimal: "best", recommended: "recommended" };

/** Sorting looks at what is on the page, so a page is long. */
const PAGE = 200;

const COLUMNS: readonly Column<PlanSummary>[] = [
  {
    name: "plan",
    title: "Plan",
    cell: (row) => (
      <Link to="/plans/$planId" params={{ planId: row.plan_id }}>
        <code>{shortId(row.plan_id)}</code>
      </Link>
    ),
  },
  {
    name: "labels",
    title: "Labels",
    cell: (row) =>
      row.labels?.map((label) => (
        <Link key={label} to="/plans/$planId" params={{ planId: label }} className={styles.label}>
          {label}
        </Link>
      )),
  },
  { name: "model", title: "Model", sortable: true, cell: (row) => row.model },
  { name: "cluster", title: "Cluster", sortable: true, cell: (row) => row.cluster },
  { name: "devices", title: "Devices", number: true, sortable: true, cell: (row) => count(row.num_devices) },
  {
    name: "backend",
    title: "Back-end",
    sortable: true,
    cell: (row) => backendWords(row.backend, row.release),
  },
  {
    name: "batch",
    title: "Batch × tokens",
    number: true,
    sortable: true,
    cell: (row) => row.global_batch_size && `${count(row.global_batch_size)} × ${count(row.sequence_length)}`,
  },
  { name: "step", title: "Step time", number: true, sortable: true, cell: (row) => seconds(row.step_time_s) },
  {
    name: "rate",
    title: "Tokens/s/device",
    number: true,
    sortable: true,
    cell: (row) => compact(row.tokens_per_s_per_device),
  },
  {
    name: "mfu",
    title: "MFU",
    number: true,
    sortable: true,
    cell: (row) => percent(row.model_flops_utilization),
  },
  {
    name: "memory",
    title: "Memory",
    number: true,
    sortable: true,
    cell: (row) => gibibytes(row.peak_memory_bytes),
  },
  { name: "fits", title: "Fits", number: true, sortable: true, cell: (row) => chance(row.fits_probability) },
  {
    name: "price",
    title: "Price a step",
    number: true,
    sortable: true,
    cell: (row) => dollars(row.cost_per_step),
  },
  {
    name: "proof",
    title: "Proof",
    cell: (row) => PROOFS[row.outcome] ?? (row.gap == null ? "not searched" : `gap ${percent(row.gap)}`),
  },
  { name: "made", title: "Made", sortable: true, cell: (row) => moment(row.created_at) },
  { name: "strategy", title: "Strategy", cell: (row) => strategyWords(row.strategy ?? {}) },
];

/** Every stored plan, newest first. */
export function Plans() {
  const search = useSearch({ from: "/plans/" });
  const wanted = readPlansSearch.full(search);
  const listed = useQuery(
    plansQuery({
      model: wanted.model || undefined,
      cluster: wanted.cluster || undefined,
      backend: wanted.backend || undefined,
      problem_id: wanted.problem || undefined,
      after: wanted.after || undefined,
      limit: PAGE,
    }),
  );
  const [sort, setSort] = useState<Sort>(NEWEST_FIRST);
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const plans = sortedPlans(listed.data?.plans ?? [], sort);
  const choice: Column<PlanSummary> = {
    name: "choose",
    title: "Compare",
    cell: (row) => (
      <input
        type="checkbox"
        aria-label={`Compare plan ${shortId(row.plan_id)}`}
        checked={chosen.includes(row.plan_id)}
        onChange={() => setChosen(chosenWith(chosen, row.plan_id))}
      />
    ),
  };
  const priced = plans.some((row) => row.cost_per_step != null);
  const shown = COLUMNS.filter((column) => priced || column.name !== "price");
  const columns = [...shown.slice(0, 1), choice, ...shown.slice(1)];
  return (
    <>
      <PageHead title="Plans">
        <PlanFilters />
      </PageHead>
      {listed.error && <ProblemNotice error={listed.error} onRetry={() => void listed.refetch()} />}
      {listed.isPending && <Loading label="plans" height={400} lines={8} />}
      {listed.isSuccess && plans.length === 0 && (
        <NoPlans filtered={Object.values(search).some((each) => each !== undefined)} />
      )}
      {plans.length > 0 && (
        <>
          <Chosen plans={chosen} onNone={() => setChosen([])} />
          <DataTable
            caption={listed.data?.next ? `Stored plans: ${count(plans.length)} of them` : "Stored plans"}
            captionHidden
            columns={columns}
            sort={sort}
            onSort={setSort}
            rows={plans}
            rowKey={(row) => row.plan_id}
          />
          <p className={styles.pages}>
            {wanted.after && (
              <Link to="/plans" search={{ ...search, after: undefined }}>
                Newest
              </Link>
            )}
            {listed.data?.next && (
              <Link to="/plans" search={{ ...search, after: listed.data.next }}>
                Older
              </Link>
            )}
          </p>
        </>
      )}
    </>
  );
}

function NoPlans({ filtered }: { filtered: boolean }) {
  return (
    <Empty title={filtered ? "No plan fits these filters" : "No plans are stored yet"}>
      <p>{filtered ? <Link to="/plans">Show all plans</Link> : <Link to="/">Make the first one</Link>}</p>
    </Empty>
  );
}
