import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { type JobRecord, jobsQuery } from "../api/queries/jobs";
import { type Column, DataTable } from "../components/DataTable";
import { Empty } from "../components/Empty";
import { Loading } from "../components/Loading";
import { PageHead } from "../components/PageHead";
import { ProblemNotice } from "../components/ProblemNotice";
import { count, moment, NONE, percent, plural, seconds, shortId } from "../lib/format";
import { JobState } from "./job/JobState";
import { JOB_STATUSES, readJobsSearch } from "./jobs.search";
import styles from "./plans/Plans.module.css";

const COLUMNS: readonly Column<JobRecord>[] = [
  {
    name: "job",
    title: "Job",
    cell: (row) => (
      <Link to="/jobs/$jobId" params={{ jobId: row.id }}>
        <code>{row.id.slice(0, 8)}</code>
      </Link>
    ),
  },
  {
    name: "model",
    title: "Model",
    cell: ({ subject, fleet }) =>
      fleet ? `fleet of ${plural(fleet.jobs, "job")}` : (subject?.model ?? NONE),
  },
  {
    name: "devices",
    title: "Devices",
    number: true,
    cell: (row) => count((row.fleet ?? row.subject)?.num_devices),
  },
  {
    name: "cluster",
    title: "Cluster",
    cell: ({ subject, fleet }) => fleet?.pools.join(", ") ?? subject?.cluster ?? NONE,
  },
  {
    name: "workload",
    title: "Samples × tokens",
    number: true,
    cell: ({ subject }) =>
      subject ? `${count(subject.global_batch_size)} × ${count(subject.sequence_length)}` : NONE,
  },
  { name: "state", title: "State", cell: (row) => <JobState job={row} /> },
  { name: "best", title: "Best so far", number: true, cell: (row) => seconds(row.progress.incumbent_s) },
  { name: "gap", title: "Gap", number: true, cell: (row) => percent(row.progress.gap) },
  {
    name: "plan",
    title: "Answer",
    cell: (row) =>
      row.result_fleet_id ? (
        <Link to="/fleet" search={{ answer: row.result_fleet_id }}>
          <code>{shortId(row.result_fleet_id)}</code>
        </Link>
      ) : (
        row.result_plan_id && (
          <Link to="/plans/$planId" params={{ planId: row.result_plan_id }}>
            <code>{shortId(row.result_plan_id)}</code>
          </Link>
        )
      ),
  },
  { name: "asked", title: "Asked", cell: (row) => moment(row.created_at) },
  { name: "owner", title: "Asked by", cell: (row) => row.owner },
];

/** Searches that were asked for: waiting, running, ended. */
export function Jobs() {
  const search = useSearch({ from: "/jobs/" });
  const wanted = readJobsSearch.full(search);
  const listed = useQuery(
    jobsQuery({
      status: wanted.status === "all" ? undefined : wanted.status,
      mine: wanted.mine || undefined,
      before: wanted.before || undefined,
    }),
  );
  const jobs = listed.data?.jobs ?? [];
  return (
    <>
      <PageHead title="Jobs">
        <Filters />
      </PageHead>
      {listed.error && <ProblemNotice error={listed.error} onRetry={() => void listed.refetch()} />}
      {listed.isPending && <Loading label="jobs" height={300} lines={6} />}
      {listed.isSuccess && jobs.length === 0 && (
        <Empty title="No jobs here">
          <p>
            A search becomes a job when it is <Link to="/">asked for</Link>.
          </p>
        </Empty>
      )}
      {jobs.length > 0 && (
        <DataTable
          caption="Jobs, newest first"
          captionHidden
          columns={COLUMNS}
          rows={jobs}
          rowKey={(row) => row.id}
        />
      )}
      <p className={styles.pages}>
        {wanted.before && (
          <Link to="/jobs" search={{ ...search, before: undefined }}>
            Newest
          </Link>
        )}
        {listed.data?.next && (
          <Link to="/jobs" search={{ ...search, before: listed.data.next }}>
            Older
          </Link>
        )}
      </p>
    </>
  );
}

function Filters() {
  const search = useSearch({ from: "/jobs/" });
  const wanted = readJobsSearch.full(search);
  const navigate = useNavigate();
  const filter = (part: Partial<typeof wanted>) =>
    void navigate({ to: "/jobs", search: readJobsSearch({ ...wanted, ...part, before: "" }) });
  return (
    <div className={styles.filters}>
      <label className={styles.filter}>
        State
        <select
          value={wanted.status}
          onChange={(event) => filter({ status: JOB_STATUSES.find((each) => each === event.target.value) })}
        >
          {JOB_STATUSES.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </label>
      <label className={styles.filter}>
        <input
          type="checkbox"
          checked={wanted.mine}
          onChange={(event) => filter({ mine: event.target.checked })}
        />
        only mine
      </label>
    </div>
  );
}
