import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { clustersQuery, modelsQuery } from "../../api/queries/catalogue";
import { downloadReport, type PlanAnswer, plansQuery } from "../../api/queries/plans";
import { Button } from "../../components/Button";
import { ProblemNotice } from "../../components/ProblemNotice";
import { saveFile } from "../../lib/save";
import { LabelForm } from "./LabelForm";
import styles from "./Plan.module.css";

/** What turns a plan into a typed question is not needed for the first view. */
const ChangeQuestion = lazy(async () => ({ default: (await import("./ChangeQuestion")).ChangeQuestion }));

/** What can be done with a plan: name it, send it around, ask again with a change. */
export function PlanActions({ plan }: { plan: PlanAnswer }) {
  const queries = useQueryClient();
  const { data: models = [] } = useQuery(modelsQuery);
  const { data: clusters = [] } = useQuery(clustersQuery);
  const same = useQuery(plansQuery({ problem_id: plan.problem_id }));
  const labels = same.data?.plans.find((each) => each.plan_id === plan.plan_id)?.labels ?? [];
  const report = useMutation({
    mutationFn: () => downloadReport(plan.plan_id),
    onSuccess: ({ name, content }) => saveFile(name, content),
  });
  const { model, cluster } = plan.problem;
  const known =
    models.some((each) => each.name === model.name) && clusters.some((each) => each.name === cluster.name);
  return (
    <div className={styles.actions}>
      {labels.map((label) => (
        <Link key={label} to="/plans/$planId" params={{ planId: label }} className={styles.label}>
          {label}
        </Link>
      ))}
      <LabelForm plan={plan.plan_id} onDone={() => void queries.invalidateQueries({ queryKey: ["plans"] })} />
      {known && (
        <Suspense fallback={null}>
          <ChangeQuestion problem={plan.problem} />
        </Suspense>
      )}
      <Button onClick={() => report.mutate()} disabled={report.isPending}>
        Save as HTML
      </Button>
      {report.error && <ProblemNotice error={report.error} />}
    </div>
  );
}
