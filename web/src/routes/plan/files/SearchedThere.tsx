import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { ApiProblem } from "../../../api/problem";
import { hasEnded, jobQuery } from "../../../api/queries/jobs";
import { ProblemNotice } from "../../../components/ProblemNotice";
import { seconds } from "../../../lib/format";

const LOOK_EVERY_MS = 700;

/** The question is still planned in that back-end; its files come when the search has ended. */
export function SearchedThere({ job, onFound }: { job: string; onFound: () => void }) {
  const { data, error } = useQuery({
    ...jobQuery(job),
    refetchInterval: (query) => (query.state.data && hasEnded(query.state.data) ? false : LOOK_EVERY_MS),
  });
  const found = data?.status === "succeeded" && data.result_kind === "plan";
  const told = useRef("");
  useEffect(() => {
    // Once for each job: an answer that is still no file is not asked for without end.
    if (!found || told.current === job) return;
    told.current = job;
    onFound();
  }, [found, job, onFound]);
  const failed = error ?? (data?.error ? new ApiProblem(data.error) : null);
  if (failed) return <ProblemNotice error={failed} />;
  const best = data?.progress.incumbent_s;
  const ended = data && hasEnded(data);
  return (
    <p role="status">
      {ended
        ? "The search in that back-end has ended."
        : `The question is planned in that back-end${best ? `: best so far ${seconds(best)}` : "\u2026"}`}{" "}
      <Link to="/jobs/$jobId" params={{ jobId: job }}>
        {ended ? "See how" : "watch it"}
      </Link>
    </p>
  );
}
