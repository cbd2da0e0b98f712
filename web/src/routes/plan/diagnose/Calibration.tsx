import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { Diagnosis } from "../../../api/queries/diagnosis";
import { planQuery } from "../../../api/queries/plans";
import { variantQuestion } from "../../../api/queries/variants";
import { Button } from "../../../components/Button";
import { ProblemNotice } from "../../../components/ProblemNotice";
import { change, plain, seconds, shortId } from "../../../lib/format";
import { saveFile } from "../../../lib/save";
import { askForPlan } from "../../new-plan/submit";
import styles from "./Diagnose.module.css";

const FACTORS = {
  compute: "Compute takes",
  communication: "Communication takes",
  fragmentation: "Memory is",
} as const;

/** The factors that make the plan agree: to keep as a file, or to plan again with. */
export function OfferedCalibration({ diagnosis, planId }: { diagnosis: Diagnosis; planId: string }) {
  const { calibration, calibrated_step_s, step } = diagnosis;
  const { data: plan } = useQuery(planQuery(planId));
  const navigate = useNavigate();
  const again = useMutation({
    mutationFn: async () => {
      if (!plan) throw new Error("the plan is not there yet");
      return askForPlan({ ...variantQuestion(plan, {}), calibration: { ...calibration } });
    },
    onSuccess: (asked) =>
      "plan" in asked
        ? navigate({ to: "/plans/$planId", params: { planId: asked.plan } })
        : navigate({ to: "/jobs/$jobId", params: { jobId: asked.job }, search: { follow: true } }),
  });
  if (!calibration) return null;
  const file = `calibration-${shortId(diagnosis.plan_id)}.json`;
  const changed = Object.entries(FACTORS).filter(([name]) => factorOf(calibration.factors, name) !== 1);
  return (
    <section className={styles.ask}>
      <h2>Calibration</h2>
      <p>
        {changed
          .map(
            ([name, words]) => `${words} ${plain(factorOf(calibration.factors, name))} times the prediction.`,
          )
          .join(" ")}{" "}
        With it the plan's step is predicted as {seconds(calibrated_step_s)}
        {step &&
          calibrated_step_s != null &&
          ` (measured against it: ${change(step.median_s / calibrated_step_s - 1)})`}
        . One run gives one factor, for this model and layout.
      </p>
      <div className={styles.buttons}>
        <Button onClick={() => saveFile(file, new Blob([`${JSON.stringify(calibration, null, 2)}\n`]))}>
          Save the calibration
        </Button>
        <Button disabled={!plan || again.isPending} onClick={() => again.mutate()}>
          {again.isPending ? "Asking…" : "Plan again with it"}
        </Button>
      </div>
      {again.error && <ProblemNotice error={again.error} />}
    </section>
  );
}

function factorOf(factors: object, name: string): number {
  return Number((factors as Record<string, unknown>)[name] ?? 1);
}
