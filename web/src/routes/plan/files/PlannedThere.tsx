import { Link } from "@tanstack/react-router";
import type { Emission } from "../../../api/queries/emissions";
import type { PlanDiff } from "../../../api/queries/variants";
import { backendWords } from "../../../lib/backends";
import { change, seconds } from "../../../lib/format";
import { MemoryChanges } from "../../diff/MemoryChanges";
import { StrategyChanges } from "../../diff/StrategyChanges";
import { TimeChanges } from "../../diff/TimeChanges";
import styles from "./Files.module.css";

/** The stored plan of another back-end that the files are of, and what separates it from this one, part by part. */
export function PlannedThere({ emission }: { emission: Emission }) {
  if (!emission.difference) return null;
  // openapi-fetch turns the pairs of a stage into lists.
  const diff = emission.difference as PlanDiff;
  const there = backendWords(emission.backend, emission.release);
  return (
    <section className={styles.there} aria-label={`The plan of ${there}`}>
      <h2>The files are of another plan: the best one of {there}</h2>
      <p>
        The same question, planned there: {seconds(emission.step_time_s)} a step, {change(emission.slower_by)}{" "}
        against this plan.{" "}
        <span className={styles.links}>
          <Link to="/plans/$planId" params={{ planId: emission.plan_id }}>
            Open that plan
          </Link>
          <Link to="/diff/$a/$b" params={{ a: diff.a, b: diff.b }}>
            Compare the two
          </Link>
        </span>
      </p>
      <div className={styles.columns}>
        <TimeChanges terms={diff.breakdown_s} a="this plan" b={there} />
        <MemoryChanges terms={diff.peak_memory_bytes} a="this plan" b={there} />
      </div>
      <StrategyChanges diff={diff} a="this plan" b={there} />
    </section>
  );
}
