import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, lazy, Suspense, useId, useMemo } from "react";
import { ApiProblem } from "../api/problem";
import { problemBoundsQuery, problemCheckQuery } from "../api/queries/questions";
import { Button } from "../components/Button";
import { hintsOf, Infeasible, isInfeasible } from "../components/Infeasible";
import { Loading } from "../components/Loading";
import { ProblemNotice } from "../components/ProblemNotice";
import { useSettled } from "../lib/settled";
import { ClusterField } from "./new-plan/ClusterField";
import { type DraftState, useDraft } from "./new-plan/draft";
import { useFiles } from "./new-plan/files";
import { LimitFields } from "./new-plan/LimitFields";
import { ModelField } from "./new-plan/ModelField";
import styles from "./new-plan/NewPlan.module.css";
import { placed } from "./new-plan/pointers";
import { checkable, questionOf } from "./new-plan/question";
import { useScript } from "./new-plan/script";
import { askForPlan } from "./new-plan/submit";
import { TopologyForm } from "./new-plan/TopologyForm";
import { Verdict } from "./new-plan/Verdict";
import { WorkloadFields } from "./new-plan/WorkloadFields";

/** Shown once a script was dropped: its code may come after the first view. */
const ScriptPanel = lazy(async () => ({ default: (await import("./new-plan/ScriptPanel")).ScriptPanel }));
const WaysOut = lazy(async () => ({ default: (await import("./new-plan/WaysOut")).WaysOut }));
const CHECK_AFTER_MS = 200;

/** Ask for a plan: model, cluster, workload; what is wrong is said while it is typed. */
export function NewPlan() {
  const { draft, documents, safe, change } = useDraft(useSearch({ from: "/" }));
  const question = useMemo(() => questionOf(draft, documents), [draft, documents]);
  const settled = useSettled(question, CHECK_AFTER_MS);
  const check = useQuery(problemCheckQuery(checkable(settled)));
  // Findings of a question that was typed before do not count against this one.
  const isChecked = settled === question && check.isSuccess && !check.isPlaceholderData;
  const bounds = useQuery({
    ...problemBoundsQuery(checkable(settled)),
    enabled: isChecked && check.data.ok,
  });
  const asking = useAsking(question);
  const refused = asking.error instanceof ApiProblem ? (asking.error.problem.errors ?? []) : [];
  const findings = placed([...(check.data?.findings ?? []), ...refused]);
  // What was refused was another question.
  const edit: DraftState["change"] = (part, added) => {
    asking.reset();
    change(part, added);
  };
  const script = useScript(draft, documents, edit);
  const files = useFiles(edit, script.open);
  const blocked =
    files.faults.length > 0 ? "A file was not taken: open another one, or go on without it." : undefined;
  const canAsk = blocked === undefined && !(isChecked && !check.data.ok) && !asking.isPending;
  const verdictId = useId();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (canAsk) asking.mutate();
  };
  const fields = { draft, documents, change: edit, findings, openFiles: files.openFiles };
  return (
    <div className={files.held ? `${styles.screen} ${styles.held}` : styles.screen}>
      <header className={styles.head}>
        <h1>New plan</h1>
        <p>
          Drop a model's config.json, a Megatron-LM launch script, a cluster document or topology files on
          this page, or choose by name.
        </p>
      </header>
      {files.topology.length > 0 && (
        <TopologyForm
          files={files.topology}
          onFiles={files.setTopology}
          base={draft.cluster}
          onLeave={files.leave}
          onCompleted={files.completed}
        />
      )}
      {script.shown && (
        <Suspense fallback={<Loading label="script" height={120} />}>
          <ScriptPanel key={script.shown.name} state={script} onPin={(pins) => edit({ pins })} />
        </Suspense>
      )}
      <form onSubmit={submit} className={styles.form} noValidate>
        <div className={styles.column}>
          {files.faults.length > 0 && (
            <div role="alert" className={styles.fileError}>
              {files.faults.map((fault) => (
                <p key={fault}>{fault}</p>
              ))}
              <Button onClick={files.forgive}>Go on without it</Button>
            </div>
          )}
          <ModelField {...fields} />
          <ClusterField {...fields} />
        </div>
        <WorkloadFields {...fields} />
        <LimitFields {...fields} />
        <div className={styles.submit}>
          <Button type="submit" look="primary" disabled={!canAsk} aria-describedby={verdictId}>
            {asking.isPending ? "Asking\u2026" : "Plan"}
          </Button>
          <Verdict
            id={verdictId}
            check={check}
            bounds={isChecked ? bounds.data : undefined}
            findings={findings.rest}
            blocked={blocked}
            safe={safe}
          />
        </div>
      </form>
      {asking.error &&
        (isInfeasible(asking.error) ? (
          <Infeasible
            error={asking.error}
            ways={
              <Suspense fallback={null}>
                <WaysOut
                  hints={hintsOf(asking.error)}
                  draft={draft}
                  documents={documents}
                  onChoose={(way) => edit(way.change)}
                />
              </Suspense>
            }
          />
        ) : (
          <ProblemNotice error={asking.error} shownElsewhere={findings.placed} />
        ))}
    </div>
  );
}

/** Ask, then show the plan or the search for it. */
function useAsking(question: Parameters<typeof askForPlan>[0]) {
  const navigate = useNavigate();
  return useMutation({
    mutationFn: () => askForPlan(question),
    onSuccess: (asked) =>
      "plan" in asked
        ? navigate({ to: "/plans/$planId", params: { planId: asked.plan } })
        : navigate({ to: "/jobs/$jobId", params: { jobId: asked.job }, search: { follow: true } }),
  });
}
