import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { PlanAnswer } from "../../api/queries/plans";
import { variantQuestion } from "../../api/queries/variants";
import { Button } from "../../components/Button";
import { DataTable } from "../../components/DataTable";
import { ProblemNotice } from "../../components/ProblemNotice";
import { chance, gibibytes, percent, seconds } from "../../lib/format";
import { askForPlan } from "../new-plan/submit";
import styles from "./Plan.module.css";
import { strategyWords } from "./strategy";

/** The recommended plan and the fastest one, with what the choice costs; one line where both are the same. */
export function Fastest({ plan }: { plan: PlanAnswer }) {
  const fastest = plan.fastest;
  const asking = useAsking(plan);
  if (!fastest) return null;
  const band = percent(fastest.band, 0);
  if (fastest.is_recommended) {
    return (
      <p className={styles.unrestricted}>
        The fastest plan is also the recommended one: within {band} of it none is surer to fit or simpler.
      </p>
    );
  }
  const rows = [
    { name: "Recommended", ...plan, mechanisms: fastest.plan_mechanisms },
    { name: "Fastest", ...fastest },
  ];
  return (
    <section className={styles.backends}>
      <h2>Recommended and fastest</h2>
      <DataTable
        caption="The recommended plan and the fastest one"
        captionHidden
        columns={[
          { name: "which", title: "Plan", cell: (row) => row.name },
          { name: "step", title: "Step time", number: true, cell: (row) => seconds(row.step_time_s) },
          { name: "memory", title: "Memory", number: true, cell: (row) => gibibytes(row.peak_memory_bytes) },
          { name: "fits", title: "Fits", number: true, cell: (row) => chance(row.fits_probability) },
          {
            name: "needs",
            title: "Switched on",
            wraps: true,
            cell: (row) => row.mechanisms.join(", ") || "nothing special",
          },
          { name: "strategy", title: "Strategy", wraps: true, cell: (row) => strategyWords(row.strategy) },
        ]}
        rows={rows}
        rowKey={(row) => row.name}
        isCurrent={(row) => row.name === "Recommended"}
      />
      <p className={styles.unrestricted}>
        This plan is {fastest.price}. Predicted times within {band} of each other are not told apart.{" "}
        <Button disabled={asking.isPending} onClick={() => asking.mutate()}>
          Take the fastest
        </Button>
      </p>
      {asking.error && <ProblemNotice error={asking.error} />}
    </section>
  );
}

/** The same question with the other preference: its stored plan, or the search for it. */
function useAsking(plan: PlanAnswer) {
  const navigate = useNavigate();
  return useMutation({
    mutationFn: () => {
      const question = variantQuestion(plan, {});
      const { backends } = plan.problem.constraints ?? {};
      const constraints = { ...question.constraints, ...(backends && { backends }) };
      return askForPlan({ ...question, constraints, prefer: "fastest" });
    },
    onSuccess: (asked) =>
      "plan" in asked
        ? navigate({ to: "/plans/$planId", params: { planId: asked.plan } })
        : navigate({ to: "/jobs/$jobId", params: { jobId: asked.job }, search: { follow: true } }),
  });
}
