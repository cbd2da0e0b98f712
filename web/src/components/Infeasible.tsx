import type { ReactNode } from "react";
import { ApiProblem, asProblem } from "../api/problem";
import { count } from "../lib/format";
import { DataTable } from "./DataTable";
import styles from "./Infeasible.module.css";

export function isInfeasible(error: unknown): boolean {
  return error instanceof ApiProblem && error.problem.slug === "no-feasible-plan";
}

/** What would fit, in sentences. */
export function hintsOf(error: unknown): readonly string[] {
  return (asProblem(error).errors ?? []).flatMap((each) => (each.hint ? [each.hint] : []));
}

interface Props {
  error: unknown;
  /** What would fit, where it can be chosen. */
  ways?: ReactNode;
}

/** No plan fits: which limit rules all of them out, the smallest change that would help, and how each candidate fell. */
export function Infeasible({ error, ways }: Props) {
  const problem = asProblem(error);
  const hints = hintsOf(error);
  const pruned = Object.entries(problem.pruned ?? {}).sort(([, a], [, b]) => b - a);
  return (
    <section className={styles.answer} role="alert" data-slug={problem.slug}>
      <p className={styles.kind}>An answer, not an error: no plan fits</p>
      <h2>{problem.binding ? `${problem.binding} rules every plan out` : problem.title}</h2>
      <p>{problem.detail}</p>
      {ways}
      {!ways && hints.length > 0 && (
        <p>
          <strong>What would fit: </strong>
          {hints.join("; ")}
        </p>
      )}
      {pruned.length > 0 && (
        <DataTable
          caption="Why each strategy fell"
          columns={[
            { name: "reason", title: "Reason", cell: ([reason]) => reason },
            {
              name: "strategies",
              title: "Strategies",
              number: true,
              cell: ([, strategies]) => count(strategies),
            },
          ]}
          rows={pruned}
          rowKey={([reason]) => reason}
        />
      )}
    </section>
  );
}
