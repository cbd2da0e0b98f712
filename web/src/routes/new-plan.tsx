import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type DragEvent, type FormEvent, useMemo, useState } from "react";
import { ApiProblem, type Finding } from "../api/problem";
import { problemCheckQuery } from "../api/queries/questions";
import { Button } from "../components/Button";
import { FindingList } from "../components/Field";
import { Infeasible, isInfeasible } from "../components/Infeasible";
import { ProblemNotice } from "../components/ProblemNotice";
import { compact, count, plural } from "../lib/format";
import { useSettled } from "../lib/settled";
import { ClusterField } from "./new-plan/ClusterField";
import { useDraft } from "./new-plan/draft";
import { readDropped } from "./new-plan/dropped";
import { LimitFields } from "./new-plan/LimitFields";
import { ModelField } from "./new-plan/ModelField";
import styles from "./new-plan/NewPlan.module.css";
import { placed } from "./new-plan/pointers";
import { checkable, questionOf } from "./new-plan/question";
import { askForPlan } from "./new-plan/submit";
import { WorkloadFields } from "./new-plan/WorkloadFields";

const CHECK_AFTER_MS = 200;

/** Ask for a plan: model, cluster, workload; what is wrong is said while it is typed. */
export function NewPlan() {
  const { draft, documents, safe, change } = useDraft(useSearch({ from: "/" }));
  const [fileError, setFileError] = useState("");
  const navigate = useNavigate();
  const question = useMemo(() => questionOf(draft, documents), [draft, documents]);
  const settled = useSettled(question, CHECK_AFTER_MS);
  const check = useQuery(problemCheckQuery(checkable(settled)));
  const asking = useMutation({
    mutationFn: () => askForPlan(question),
    onSuccess: (asked) =>
      "plan" in asked
        ? navigate({ to: "/plans/$planId", params: { planId: asked.plan } })
        : navigate({ to: "/jobs/$jobId", params: { jobId: asked.job }, search: { follow: true } }),
  });
  const refused = asking.error instanceof ApiProblem ? asking.error.problem.errors : [];
  const findings = placed([...(check.data?.findings ?? []), ...(refused ?? [])]);

  const openFile = (file: File) =>
    readDropped(file).then(
      (found) => {
        setFileError("");
        change(
          {
            ...(found.model && { modelFile: found.model.name }),
            ...(found.cluster && { clusterFile: found.cluster.name }),
          },
          found,
        );
      },
      (error: Error) => setFileError(error.message),
    );
  const drop = (event: DragEvent) => {
    event.preventDefault();
    for (const file of event.dataTransfer.files) void openFile(file);
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    asking.mutate();
  };
  const fields = {
    draft,
    documents,
    change: (part: Partial<typeof draft>) => {
      asking.reset();
      change(part);
    },
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: dropping is a second way; the buttons are the first
    <div className={styles.screen} onDragOver={(event) => event.preventDefault()} onDrop={drop}>
      <header className={styles.head}>
        <h1>New plan</h1>
        <p>Drop a model's config.json or a cluster document anywhere on this page, or choose by name.</p>
      </header>
      <form onSubmit={submit} className={styles.form} noValidate>
        <ModelField {...fields} findings={findings.model} openFile={openFile} />
        <ClusterField
          {...fields}
          findings={findings.cluster}
          devicesFindings={findings.devices}
          openFile={openFile}
        />
        <WorkloadFields {...fields} findings={findings} />
        <LimitFields {...fields} findings={findings} />
        {fileError && (
          <p role="alert" className={styles.fileError}>
            {fileError}
          </p>
        )}
        <div className={styles.submit}>
          <Button type="submit" look="primary" disabled={asking.isPending}>
            {asking.isPending ? "Asking\u2026" : "Plan"}
          </Button>
          <Verdict check={check} findings={findings.rest} safe={safe} />
        </div>
      </form>
      {asking.error &&
        (isInfeasible(asking.error) ? (
          <Infeasible error={asking.error} />
        ) : (
          <ProblemNotice error={asking.error} shownElsewhere={findings.placed} />
        ))}
    </div>
  );
}

interface VerdictProps {
  check: {
    data?: {
      ok: boolean;
      num_devices?: number | null;
      parameters?: number | null;
      findings?: readonly Finding[];
    };
    error: Error | null;
  };
  findings: readonly Finding[];
  safe: boolean;
}

/** Whether the question can be asked, and what it amounts to. */
function Verdict({ check, findings, safe }: VerdictProps) {
  const wrong = check.data?.findings?.length ?? 0;
  return (
    <div className={styles.verdict} role="status">
      {check.error && <p>It could not be checked: {check.error.message}</p>}
      {check.data?.ok && (
        <p>
          {compact(check.data.parameters)} parameters on {count(check.data.num_devices)} devices: legal.
        </p>
      )}
      {wrong > 0 && <p>{plural(wrong, "finding")}: see beside the fields.</p>}
      <FindingList findings={findings} />
      {!safe && <p>This browser keeps nothing: what you type is lost with the page.</p>}
    </div>
  );
}
