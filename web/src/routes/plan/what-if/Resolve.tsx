import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect } from "react";
import { ApiProblem } from "../../../api/problem";
import { fetchEstimate } from "../../../api/queries/estimates";
import { hasEnded, type JobRecord, jobQuery } from "../../../api/queries/jobs";
import { type PlanAnswer, planQuery } from "../../../api/queries/plans";
import { Button } from "../../../components/Button";
import { Infeasible, isInfeasible } from "../../../components/Infeasible";
import { ProblemNotice } from "../../../components/ProblemNotice";
import { change, plural, seconds } from "../../../lib/format";
import { askForPlan } from "../../new-plan/submit";
import { type Chosen, LABELS, STRATEGY_FIELDS } from "./fields";
import { changedFields, pinnedQuestion, pinsOf, scaledProblemQuestion, scaleOf } from "./question";
import styles from "./WhatIf.module.css";

interface Props {
  plan: PlanAnswer;
  chosen: Chosen;
  /** The search that the address names, and the plan that came of it. */
  job: string;
  solved: string;
  onAsked: (part: { job?: string; solved?: string }) => void;
}

const LOOK_EVERY_MS = 700;

async function solve(plan: PlanAnswer, chosen: Chosen) {
  const scaled = Object.keys(scaleOf(chosen)).length > 0;
  const problem = scaled ? (await fetchEstimate(scaledProblemQuestion(plan, chosen))).problem : undefined;
  return askForPlan(pinnedQuestion(plan, chosen, problem?.cluster));
}

/** Search for the best plan that keeps what was changed. */
export function Resolve({ plan, chosen, job, solved, onAsked }: Props) {
  const asking = useMutation({
    mutationFn: () => solve(plan, chosen),
    onSuccess: (asked) => onAsked("plan" in asked ? { solved: asked.plan } : { job: asked.job }),
  });
  const running = useQuery({
    ...jobQuery(job),
    enabled: job !== "" && solved === "",
    refetchInterval: (query) => (query.state.data && hasEnded(query.state.data) ? false : LOOK_EVERY_MS),
  });
  const found = running.data?.result_plan_id;
  useEffect(() => {
    if (found && solved === "") onAsked({ job, solved: found });
  }, [found, solved, job, onAsked]);
  const pins = Object.entries(pinsOf(chosen)).map(([name, value]) => `${name}=${String(value)}`);
  const error =
    asking.error ?? running.error ?? (running.data?.error ? new ApiProblem(running.data.error) : null);
  const busy = asking.isPending || (job !== "" && solved === "" && !error);
  return (
    <section className={styles.solve} aria-label="Solve">
      <p className={styles.head}>
        <Button
          look="primary"
          onClick={() => asking.mutate()}
          disabled={busy || changedFields(chosen).length === 0}
        >
          {pins.length > 0 ? `Solve with ${plural(pins.length, "pin")}` : "Solve"}
        </Button>
        <span className={styles.kind}>{said(pins, chosen)}</span>
      </p>
      <div role="status">
        {busy && <Searching job={running.data} />}
        {solved !== "" && <Solved plan={plan} solved={solved} />}
      </div>
      {error &&
        !busy &&
        (isInfeasible(error) ? <Infeasible error={error} /> : <ProblemNotice error={error} />)}
    </section>
  );
}

function said(pins: readonly string[], chosen: Chosen): string {
  if (changedFields(chosen).length === 0) return "Change something first: then the rest is searched again.";
  const machine = changedFields(chosen).filter(
    (name) => !(STRATEGY_FIELDS as readonly string[]).includes(name),
  );
  const asked = machine.map((name) => `${LABELS[name].toLowerCase()} ${chosen[name]}`).join(", ");
  const where = asked ? ` for ${asked}` : "";
  if (pins.length === 0) return `The best plan is searched${where}; the whole strategy is free.`;
  return `The best plan is searched${where} with ${pins.join(", ")}; everything else is free.`;
}

function Searching({ job }: { job: JobRecord | undefined }) {
  if (!job) return <p>Asking…</p>;
  const best = job.progress.incumbent_s;
  return (
    <p>
      Searching{best ? `: best so far ${seconds(best)}` : "…"} ·{" "}
      <Link to="/jobs/$jobId" params={{ jobId: job.id }}>
        watch it
      </Link>
    </p>
  );
}

function Solved({ plan, solved }: { plan: PlanAnswer; solved: string }) {
  const { data } = useQuery(planQuery(solved));
  if (!data) return <p>Loading the plan…</p>;
  return (
    <p className={styles.solved}>
      <strong>Solved: {seconds(data.step_time_s)}</strong> ({change(data.step_time_s / plan.step_time_s - 1)}{" "}
      against this plan){" "}
      <Link to="/plans/$planId" params={{ planId: data.plan_id }}>
        Open the new plan
      </Link>{" "}
      {/* The diff page is a screen of its own; its address is all that is known here. */}
      <Link to={`/diff/${plan.plan_id}/${data.plan_id}` as string}>Compare the two</Link>
    </p>
  );
}
