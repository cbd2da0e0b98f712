import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { PlanAnswer } from "../../api/queries/plans";
import { variantQuestion } from "../../api/queries/variants";
import { Button } from "../../components/Button";
import { DataTable } from "../../components/DataTable";
import { Infeasible, isInfeasible } from "../../components/Infeasible";
import { ProblemNotice } from "../../components/ProblemNotice";
import { backendWords, spelled } from "../../lib/backends";
import { change, gibibytes, percent, seconds } from "../../lib/format";
import { askForPlan } from "../new-plan/submit";
import styles from "./Plan.module.css";
import { strategyWords } from "./strategy";

type Row = NonNullable<PlanAnswer["backends"]>[number];

/** What every back-end that was asked makes of the question, and what none of them can run yet. */
export function BackEnds({ plan }: { plan: PlanAnswer }) {
  const rows = plan.backends ?? [];
  const planning = usePlanning(plan);
  if (rows.length === 0 && !plan.unrestricted) return null;
  const isFastest = plan.fastest?.is_recommended ?? true;
  const own = (row: Row) => row.backend === plan.backend && row.release === plan.release;
  return (
    <section className={styles.backends}>
      <h2>Every back-end</h2>
      {rows.length > 0 && (
        <DataTable
          caption="The fastest plan of each back-end that was asked, under its own physics"
          captionHidden
          columns={[
            { name: "backend", title: "Back-end", cell: (row) => backendWords(row.backend, row.release) },
            { name: "step", title: "Step time", number: true, cell: (row) => seconds(row.step_time_s) },
            {
              name: "slower",
              title: "Slower by",
              number: true,
              cell: (row) => (own(row) ? "" : change(row.slower_by)),
            },
            { name: "gap", title: "Gap", number: true, cell: (row) => percent(row.gap) },
            {
              name: "memory",
              title: "Memory",
              number: true,
              cell: (row) => gibibytes(row.peak_memory_bytes),
            },
            {
              name: "strategy",
              title: "Strategy, or why it has none",
              wraps: true,
              cell: (row) =>
                row.strategy ? (
                  strategyWords(row.strategy)
                ) : (
                  <span className={styles.reason}>{row.reason}</span>
                ),
            },
            {
              name: "there",
              title: <span className="visually-hidden">Plan there</span>,
              cell: (row) =>
                own(row) ? (
                  <span className={styles.own}>{isFastest ? "this plan" : "the fastest plan"}</span>
                ) : (
                  row.strategy && (
                    <Button
                      aria-label={`Plan there: ${backendWords(row.backend, row.release)}`}
                      disabled={planning.isPending}
                      onClick={() => planning.mutate(spelled(row.backend, row.release))}
                    >
                      Plan there
                    </Button>
                  )
                ),
            },
          ]}
          rows={rows}
          rowKey={(row) => spelled(row.backend, row.release)}
          isCurrent={own}
        />
      )}
      {plan.unrestricted && <Unrestricted found={plan.unrestricted} />}
      {planning.error &&
        (isInfeasible(planning.error) ? (
          <Infeasible error={planning.error} />
        ) : (
          <ProblemNotice error={planning.error} />
        ))}
    </section>
  );
}

/** The same question to one back-end: its stored plan, or the search for it. */
function usePlanning(plan: PlanAnswer) {
  const navigate = useNavigate();
  return useMutation({
    mutationFn: (backend: string) => askForPlan(variantQuestion(plan, {}, backend)),
    onSuccess: (asked) =>
      "plan" in asked
        ? navigate({ to: "/plans/$planId", params: { planId: asked.plan } })
        : navigate({ to: "/jobs/$jobId", params: { jobId: asked.job }, search: { follow: true } }),
  });
}

function Unrestricted({ found }: { found: NonNullable<PlanAnswer["unrestricted"]> }) {
  return (
    <p className={styles.unrestricted}>
      <strong>No back-end can run yet:</strong> {seconds(found.step_time_s)} a step,{" "}
      {percent(found.faster_by)} faster, with {strategyWords(found.strategy)}. {found.why}
    </p>
  );
}
