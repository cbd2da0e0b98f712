import type { UseQueryResult } from "@tanstack/react-query";
import type { Schemas } from "../../api/client";
import type { Finding } from "../../api/problem";
import { FindingList } from "../../components/Field";
import { compact, count, plural } from "../../lib/format";
import styles from "./NewPlan.module.css";

interface Props {
  check: Pick<UseQueryResult<Schemas["ProblemCheck"]>, "data" | "error">;
  /** Findings that stand beside no field. */
  findings: readonly Finding[];
  /** Whether the browser keeps what is typed. */
  safe: boolean;
}

/** Whether the question can be asked, and what it amounts to. */
export function Verdict({ check, findings, safe }: Props) {
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
      <FindingList findings={findings} pointers />
      {!safe && <p>This browser keeps nothing: what you type is lost with the page.</p>}
    </div>
  );
}
