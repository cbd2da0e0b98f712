import type { PlanAnswer } from "../../api/queries/plans";
import { DataTable } from "../../components/DataTable";
import { count } from "../../lib/format";
import styles from "./Plan.module.css";

/** What the search looked at, and what the numbers assume. */
export function SearchNotes({ plan }: { plan: PlanAnswer }) {
  const pruned = Object.entries(plan.search.pruned).sort(([, a], [, b]) => b - a);
  return (
    <section className={styles.notes}>
      <h2>What was searched and assumed</h2>
      <p>
        {count(plan.search.enumerated)} strategies, {count(plan.search.evaluated)} of them solved exactly:{" "}
        {plan.search.proof}.
      </p>
      <DataTable
        caption="Strategies by why they were not solved"
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
      <ul className={styles.notes}>
        {plan.assumptions?.map((each) => (
          <li key={each}>{each}</li>
        ))}
      </ul>
    </section>
  );
}
