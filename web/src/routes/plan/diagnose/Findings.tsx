import type { ReactNode } from "react";
import type { Diagnosis, RunFinding } from "../../../api/queries/diagnosis";
import { percent, seconds } from "../../../lib/format";
import styles from "./Diagnose.module.css";

/** What somebody can change, the most seconds first, as the service ranks it. */
export function Findings({ diagnosis }: { diagnosis: Diagnosis }) {
  const { findings, step, predicted_step_s } = diagnosis;
  return (
    <section className={styles.part}>
      <h2>What was found</h2>
      {findings.length === 0 ? (
        <p className={styles.none}>
          Nothing in these files that somebody can change; less than 3&nbsp;% of a step is not told. What
          remains is how exact the prediction is.
        </p>
      ) : (
        <ol className={styles.findings}>
          {findings.map((each) => (
            <FindingItem key={each.what} finding={each} step_s={step?.median_s ?? predicted_step_s} />
          ))}
        </ol>
      )}
    </section>
  );
}

function FindingItem({ finding, step_s }: { finding: RunFinding; step_s: number }) {
  return (
    <li data-kind={finding.kind} className={finding.kind.startsWith("another") ? styles.first : undefined}>
      <p className={styles.cost}>
        {finding.seconds == null ? (
          <span>not in seconds</span>
        ) : (
          <>
            <b>{seconds(finding.seconds, 3)}</b>
            <span>{percent(finding.seconds / step_s)} of a step</span>
          </>
        )}
      </p>
      <div>
        <h3>{finding.what}</h3>
        <p>{withCode(finding.advice)}</p>
        <p className={styles.evidence}>Seen in {finding.evidence.join("; ")}</p>
      </div>
    </li>
  );
}

/** Words in backquotes are commands. */
function withCode(text: string): ReactNode {
  // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one sentence never change places
  return text.split("`").map((part, place) => (place % 2 === 0 ? part : <code key={place}>{part}</code>));
}
