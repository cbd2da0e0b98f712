import styles from "./Accuracy.module.css";

/** How does a report of one's own come here? */
export function OwnReport({ none }: { none: boolean }) {
  const commands = `meshwright accuracy TRUTH.csv -o json > report.json
curl -X PUT ${window.location.origin}/v1/accuracy/NAME -H 'If-None-Match: *' \\
  -H 'Content-Type: application/json' --data-binary @report.json`;
  return (
    <details open={none}>
      <summary>{none ? "No report has been uploaded yet: add your own runs" : "Add a report"}</summary>
      <p>
        One line of TRUTH.csv is one measured run. Where keys are demanded, the upload needs one with scope
        admin.
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable with keys */}
      <pre className={styles.commands} tabIndex={0}>
        {commands}
      </pre>
    </details>
  );
}
