import { asProblem, type Finding } from "../api/problem";
import { Button } from "./Button";
import styles from "./ProblemNotice.module.css";

interface Props {
  /** Whatever was thrown, or a problem document inside an ApiProblem. */
  error: unknown;
  /** Findings that are shown beside their field already; the notice leaves them out. */
  shownElsewhere?: readonly Finding[];
  onRetry?: () => void;
}

/** What was refused, where, and what repairs it. */
export function ProblemNotice({ error, shownElsewhere = [], onRetry }: Props) {
  const problem = asProblem(error);
  const findings = (problem.errors ?? []).filter((each) => !shownElsewhere.includes(each));
  const saidAlready = findings.some((each) => each.detail === problem.detail);
  return (
    <section className={styles.notice} role="alert" data-slug={problem.slug}>
      <p className={styles.title}>{problem.title}</p>
      {saidAlready ? null : <p>{problem.detail}</p>}
      {findings.length > 0 && (
        <ul className={styles.findings}>
          {findings.map((each) => (
            <FindingLine key={`${each.pointer} ${each.detail}`} finding={each} />
          ))}
        </ul>
      )}
      {(onRetry || problem.request_id) && (
        <p className={styles.foot}>
          {onRetry && <Button onClick={onRetry}>Try again</Button>}
          {problem.request_id && (
            <span>
              request <code>{problem.request_id}</code>
            </span>
          )}
        </p>
      )}
    </section>
  );
}

function FindingLine({ finding }: { finding: Finding }) {
  return (
    <li>
      {finding.pointer && <span className={styles.where}>{finding.pointer} </span>}
      {finding.hint ? finding.detail.replace(/\.$/, "") : finding.detail}
      {finding.hint && <span className={styles.hint}>: {finding.hint}</span>}
    </li>
  );
}
