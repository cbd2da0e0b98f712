import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { lazy, Suspense, useEffect } from "react";
import { useJobEvents } from "../api/jobEvents";
import { ApiProblem } from "../api/problem";
import { cancelJob, hasEnded, type JobRecord, jobQuery } from "../api/queries/jobs";
import { Button } from "../components/Button";
import { hintsOf, Infeasible } from "../components/Infeasible";
import { Loading } from "../components/Loading";
import { PageHead } from "../components/PageHead";
import { ProblemNotice } from "../components/ProblemNotice";
import { count, moment, percent, plural, seconds } from "../lib/format";
import styles from "./job/Job.module.css";
import { JobState } from "./job/JobState";
import { ProgressFigure } from "./job/ProgressFigure";

/** Shown where no plan fits. */
const TypedWaysOut = lazy(async () => ({ default: (await import("./job/TypedWaysOut")).TypedWaysOut }));

/** One search while it runs and after: the best plan so far, the bound, and what came of it. */
export function Job() {
  const { jobId } = useParams({ from: "/jobs/$jobId" });
  const { follow } = useSearch({ from: "/jobs/$jobId" });
  const navigate = useNavigate();
  const queries = useQueryClient();
  const job = useQuery(jobQuery(jobId));
  const { events, connected } = useJobEvents(jobId);
  const latest = events.at(-1);
  const cancelling = useMutation({
    mutationFn: () => cancelJob(jobId),
    onSuccess: (record) => queries.setQueryData(jobQuery(jobId).queryKey, record),
  });

  // An event says that something changed; the record says what came of it.
  useEffect(() => {
    if (latest?.status) void queries.invalidateQueries({ queryKey: jobQuery(jobId).queryKey });
  }, [latest?.status, jobId, queries]);

  const planId = job.data?.result_plan_id;
  const fleetId = job.data?.result_fleet_id;
  useEffect(() => {
    if (follow && fleetId) void navigate({ to: "/fleet", search: { answer: fleetId }, replace: true });
  }, [follow, fleetId, navigate]);
  useEffect(() => {
    if (follow && planId) void navigate({ to: "/plans/$planId", params: { planId }, replace: true });
  }, [follow, planId, navigate]);

  if (job.error) return <ProblemNotice error={job.error} onRetry={() => void job.refetch()} />;
  if (!job.data) return <Loading label="job" height={360} lines={5} />;
  const shown: JobRecord =
    latest && !hasEnded(job.data)
      ? { ...job.data, status: latest.status, progress: latest.progress }
      : job.data;
  return (
    <div className={styles.screen}>
      <PageHead title={title(shown)}>
        <div className={styles.actions}>
          {!hasEnded(shown) && (
            <Button
              onClick={() => cancelling.mutate()}
              disabled={cancelling.isPending || shown.cancel_requested}
            >
              {shown.fleet ? "Stop and share by what is known" : "Stop and keep the best plan"}
            </Button>
          )}
          {planId && (
            <Link to="/plans/$planId" params={{ planId }}>
              Open the plan
            </Link>
          )}
          {fleetId && (
            <Link to="/fleet" search={{ answer: fleetId }}>
              Open the fleet
            </Link>
          )}
        </div>
      </PageHead>
      {cancelling.error && <ProblemNotice error={cancelling.error} />}
      <Facts job={shown} connected={connected || hasEnded(shown)} />
      {!shown.fleet && <ProgressFigure events={events} />}
      <Outcome job={shown} />
    </div>
  );
}

/** What is searched for; a job of an earlier version does not say. */
function title({ subject, fleet }: JobRecord): string {
  if (fleet)
    return `${plural(fleet.jobs, "job")} on ${count(fleet.num_devices)} devices of ${fleet.pools.join(", ")}`;
  return subject
    ? `${subject.model} on ${count(subject.num_devices)} devices of ${subject.cluster}`
    : "Search for a plan";
}

function Facts({ job, connected }: { job: JobRecord; connected: boolean }) {
  const { progress, subject, fleet } = job;
  return (
    <dl className={styles.facts} aria-live="polite">
      <Fact name="State">
        <JobState job={job} />
        {!connected && " (the connection is broken; trying again)"}
      </Fact>
      {fleet ? (
        <Fact name="Speeds known">
          {count(progress.done)} of {count(progress.wanted)} sizes
        </Fact>
      ) : (
        <>
          <Fact name="Best so far">{seconds(progress.incumbent_s)}</Fact>
          <Fact name="Bound">{seconds(progress.bound_s)}</Fact>
          <Fact name="Gap">{percent(progress.gap, 2)}</Fact>
          <Fact name="Strategies bounded">{count(progress.bounded)}</Fact>
          <Fact name="Solved exactly">{count(progress.evaluated)}</Fact>
        </>
      )}
      {subject && (
        <Fact name="A step">
          {count(subject.global_batch_size)} samples of {count(subject.sequence_length)} tokens
        </Fact>
      )}
      <Fact name="Asked">{moment(job.created_at)}</Fact>
    </dl>
  );
}

function Fact({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Outcome({ job }: { job: JobRecord }) {
  if (!job.error) return null;
  const error = new ApiProblem(job.error);
  const back = (
    <p>
      <Link to="/">Change the question</Link>: what you typed is still there.
    </p>
  );
  return (
    <>
      {job.result_kind === "infeasible" ? (
        <Infeasible
          error={error}
          ways={
            <Suspense fallback={null}>
              <TypedWaysOut job={job} hints={hintsOf(error)} />
            </Suspense>
          }
        />
      ) : (
        <ProblemNotice error={error} />
      )}
      {back}
    </>
  );
}
