import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { clustersQuery, modelsQuery } from "../../api/queries/catalogue";
import { downloadReport, type PlanAnswer, plansQuery } from "../../api/queries/plans";
import { Button, buttonClass } from "../../components/Button";
import { ProblemNotice } from "../../components/ProblemNotice";
import { saveFile } from "../../lib/save";
import { LabelForm } from "./LabelForm";
import styles from "./Plan.module.css";
import { searchOfProblem } from "./questionAgain";

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
        <Link to="/" search={searchOfProblem(plan.problem)} className={buttonClass()}>
          Change the question
        </Link>
      )}
      <Button onClick={() => report.mutate()} disabled={report.isPending}>
        Save as HTML
      </Button>
      {report.error && <ProblemNotice error={report.error} />}
    </div>
  );
}
