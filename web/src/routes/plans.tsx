import { useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { type PlanSummary, plansQuery } from "../api/queries/plans";
import { type Column, DataTable } from "../components/DataTable";
import { Empty } from "../components/Empty";
import { Loading } from "../components/Loading";
import { PageHead } from "../components/PageHead";
import { ProblemNotice } from "../components/ProblemNotice";
import { backendWords } from "../lib/backends";
import { count, moment, percent, seconds, shortId } from "../lib/format";
import { PlanFilters } from "./plans/PlanFilters";
import styles from "./plans/Plans.module.css";
import { readPlansSearch } from "./plans.search";

/** What is proved of a stored plan, in a word. */
const PROOFS: Readonly<Record<string, string>> = { optimal: "best", recommended: "recommended" };

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
  { name: "model", title: "Model", cell: (row) => row.model },
  { name: "cluster", title: "Cluster", cell: (row) => row.cluster },
  { name: "devices", title: "Devices", number: true, cell: (row) => count(row.num_devices) },
  { name: "backend", title: "Back-end", cell: (row) => backendWords(row.backend, row.release) },
  { name: "step", title: "Step time", number: true, cell: (row) => seconds(row.step_time_s) },
  {
    name: "proof",
    title: "Proof",
    cell: (row) => PROOFS[row.outcome] ?? (row.gap == null ? "not searched" : `gap ${percent(row.gap)}`),
  },
  { name: "made", title: "Made", cell: (row) => moment(row.created_at) },
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
    }),
  );
  const plans = listed.data?.plans ?? [];
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
          <DataTable
            caption="Stored plans, newest first"
            captionHidden
            columns={COLUMNS}
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
