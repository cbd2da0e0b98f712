import type { Diagnosis } from "../../../api/queries/diagnosis";
import { DataTable } from "../../../components/DataTable";
import {
  bytes,
  bytesChange,
  change,
  plural,
  seconds,
  secondsChange,
  secondsRange,
} from "../../../lib/format";
import { OfferedCalibration } from "./Calibration";
import styles from "./Diagnose.module.css";
import { RanksFigure, StepFigure } from "./Figures";
import { Findings } from "./Findings";
import { isTraced } from "./rows";

/** Predicted beside measured, what was found, and what no file tells. */
export function Answer({ diagnosis, planId }: { diagnosis: Diagnosis; planId: string }) {
  return (
    <div className={styles.answer}>
      <Facts diagnosis={diagnosis} />
      <Findings diagnosis={diagnosis} />
      {isTraced(diagnosis) && <StepFigure diagnosis={diagnosis} />}
      {diagnosis.ranks.length > 0 && <RanksFigure ranks={diagnosis.ranks} />}
      <div className={styles.tables}>
        {diagnosis.operators.length > 0 && <Operators diagnosis={diagnosis} />}
        {diagnosis.memory.some((each) => each.measured_bytes != null) && <Memory diagnosis={diagnosis} />}
      </div>
      {diagnosis.calibration && <OfferedCalibration diagnosis={diagnosis} planId={planId} />}
      {diagnosis.not_measured.length > 0 && (
        <section className={styles.part}>
          <h2>Not measured</h2>
          <ul className={styles.list}>
            {diagnosis.not_measured.map((each) => (
              <li key={each}>{each}</li>
            ))}
          </ul>
        </section>
      )}
      <Files diagnosis={diagnosis} />
    </div>
  );
}

function Facts({ diagnosis }: { diagnosis: Diagnosis }) {
  const { step } = diagnosis;
  const facts: readonly (readonly [string, string, string?])[] = [
    [
      "Predicted step",
      seconds(diagnosis.predicted_step_s),
      `between ${secondsRange(...diagnosis.predicted_interval_s)}`,
    ],
    ...(step
      ? ([
          [
            "Measured step",
            seconds(step.median_s),
            `median of ${plural(step.num_steps, "step")} of ${step.source}; 8 of 10 within ${secondsRange(step.p10_s, step.p90_s)}`,
          ],
          ["Against the plan", change(diagnosis.slower_by), "measured median over predicted"],
        ] as const)
      : []),
    // Of another run than the plan's, most of the difference is just that.
    ...(step && diagnosis.same_run
      ? ([
          [
            "Not explained",
            secondsChange(diagnosis.unexplained_s),
            "measured less predicted less what was found",
          ],
        ] as const)
      : []),
    ...(diagnosis.as_run_step_s == null
      ? []
      : ([
          ["Predicted as it ran", seconds(diagnosis.as_run_step_s), "with the flags that the log states"],
        ] as const)),
  ];
  return (
    <dl className={styles.facts} aria-label="The step, predicted and measured">
      {facts.map(([name, value, small]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd className={styles.figure}>{value}</dd>
          <dd className={styles.small}>{small}</dd>
        </div>
      ))}
    </dl>
  );
}

function Operators({ diagnosis }: { diagnosis: Diagnosis }) {
  return (
    <section className={styles.part}>
      <h2>Computing by operator</h2>
      <DataTable
        caption="Computing by operator class"
        captionHidden
        columns={[
          { name: "operator", title: "Operator", cell: (row) => row.operator.replaceAll("_", " ") },
          { name: "predicted", title: "Predicted", number: true, cell: (row) => seconds(row.predicted_s) },
          { name: "measured", title: "Measured", number: true, cell: (row) => seconds(row.measured_s) },
          {
            name: "difference",
            title: "Difference",
            number: true,
            cell: (row) => differenceOf(row.predicted_s, row.measured_s, secondsChange),
          },
        ]}
        rows={diagnosis.operators}
        rowKey={(row) => row.operator}
      />
    </section>
  );
}

/** Nothing where one of the two is unknown. */
export function differenceOf(
  predicted: number | null,
  measured: number | null | undefined,
  write: (value: number) => string,
): string {
  return predicted == null || measured == null ? "–" : write(measured - predicted);
}

function Memory({ diagnosis }: { diagnosis: Diagnosis }) {
  return (
    <section className={styles.part}>
      <h2>Peak memory</h2>
      <DataTable
        caption="Peak memory, predicted and measured"
        captionHidden
        columns={[
          { name: "stage", title: "Stage", cell: (row) => row.stage },
          { name: "rank", title: "Rank", cell: (row) => row.rank ?? "–" },
          { name: "predicted", title: "Predicted", number: true, cell: (row) => bytes(row.predicted_bytes) },
          { name: "measured", title: "Measured", number: true, cell: (row) => bytes(row.measured_bytes) },
          {
            name: "difference",
            title: "Difference",
            number: true,
            cell: (row) => differenceOf(row.predicted_bytes, row.measured_bytes, bytesChange),
          },
          { name: "meaning", title: "What was read", cell: (row) => row.meaning || "–" },
        ]}
        rows={diagnosis.memory}
        rowKey={(row) => `${row.stage} ${row.rank} ${row.meaning}`}
      />
    </section>
  );
}

function Files({ diagnosis }: { diagnosis: Diagnosis }) {
  return (
    <section className={styles.part}>
      <h2>Files</h2>
      <DataTable
        caption="What was read from each file"
        captionHidden
        columns={[
          { name: "name", title: "File", cell: (row) => row.name },
          { name: "format", title: "Read as", cell: (row) => row.read_as || "not recognised" },
          {
            name: "used",
            title: "Used for",
            wraps: true,
            cell: (row) => row.used_for.join(", ") || `nothing: ${row.not_used}`,
          },
        ]}
        rows={diagnosis.files}
        rowKey={(row) => row.name}
      />
    </section>
  );
}
