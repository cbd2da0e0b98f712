import type { UseQueryResult } from "@tanstack/react-query";
import type { Schemas } from "../../api/client";
import type { Finding } from "../../api/problem";
import type { ProblemBounds } from "../../api/queries/questions";
import { FindingList } from "../../components/Field";
import { compact, count, plural, seconds } from "../../lib/format";
import styles from "./NewPlan.module.css";

interface Props {
  id: string;
  check: Pick<UseQueryResult<Schemas["ProblemCheck"]>, "data" | "error">;
  bounds: ProblemBounds | undefined;
  /** Findings that stand beside no field. */
  findings: readonly Finding[];
  /** Why the question cannot be asked, besides findings. */
  blocked: string | undefined;
  /** Whether the browser keeps what is typed. */
  safe: boolean;
}

/** Whether the question can be asked, whether anything can fit, and how fast a plan can be at most. */
export function Verdict({ id, check, bounds, findings, blocked, safe }: Props) {
  const { data } = check;
  const wrong = data?.findings?.length ?? 0;
  return (
    <div id={id} className={styles.verdict} role="status">
      {check.error && <p>It could not be checked: {check.error.message}</p>}
      {data?.ok && (
        <p>
          {compact(data.parameters)} parameters on {count(data.num_devices)} devices{bounds ? ": " : "."}
          {bounds && <strong data-may-fit={String(bounds.may_fit)}>{headOf(bounds)}</strong>}
        </p>
      )}
      {data?.ok && bounds && <p className={styles.bounds}>{backEndsOf(bounds)}</p>}
      {wrong > 0 && <p>{plural(wrong, "finding")} to repair first: see beside the fields.</p>}
      {blocked && <p>{blocked}</p>}
      <FindingList findings={findings} pointers />
      {!safe && <p>This browser keeps nothing: what you type is lost with the page.</p>}
    </div>
  );
}

function headOf({ may_fit, least_step_s }: ProblemBounds): string {
  if (may_fit === false) return "nothing fits. Plan says what would.";
  if (may_fit == null) return "whether it fits takes a search.";
  if (least_step_s == null) return "it may fit.";
  return `it may fit; no plan is faster than ${seconds(least_step_s)} a step.`;
}

/** Bounds of the back-ends, before any search. */
function backEndsOf({ backends }: ProblemBounds): string {
  const names = (which: readonly { readonly backend: string }[]) =>
    which.map((each) => each.backend).join(", ");
  const bounded = backends.filter((each) => each.least_step_s != null);
  const without = backends.filter((each) => each.may_fit === false);
  const open = backends.filter((each) => each.may_fit == null);
  const parts = [
    bounded.length > 0 &&
      `Bounds before any search: ${bounded.map((each) => `${each.backend} ${seconds(each.least_step_s, 3)}`).join(", ")}`,
    without.length > 0 && bounded.length > 0 && `it fits none of ${names(without)}`,
    open.length > 0 && `too many strategies to bound at once: ${names(open)}`,
  ].filter(Boolean);
  return parts.length > 0 ? `${parts.join("; ")}.` : "";
}
