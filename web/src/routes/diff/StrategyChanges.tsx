import { useQuery } from "@tanstack/react-query";
import { explanationQuery } from "../../api/queries/plans";
import type { PlanDiff } from "../../api/queries/variants";
import { bytesChange, secondsChange } from "../../lib/format";
import { aloneOf, comparable } from "./alone";
import styles from "./Diff.module.css";
import { FieldChanges } from "./FieldChanges";

interface Props {
  diff: PlanDiff;
  /** What the two sides are called. */
  a?: string;
  b?: string;
}

/** What differs in the strategy, and what each change would do alone, where plan a's own ledger tells it. */
export function StrategyChanges({ diff, a = "a", b = "b" }: Props) {
  const told = comparable(diff);
  const { data: why } = useQuery({ ...explanationQuery(diff.a), enabled: told });
  if (diff.strategy.length === 0) return <p className={styles.soft}>The strategies are the same.</p>;
  const alone = aloneOf(diff, why?.neighbours ?? []);
  const together = <span className={styles.soft}>only with others</span>;
  return (
    <FieldChanges
      changes={diff.strategy}
      caption={`What differs in the strategy${told ? `, and what each change does alone to ${a === "a" ? "plan a" : a}` : ""}`}
      a={a}
      b={b}
      more={
        told
          ? [
              {
                name: "seconds",
                title: "Alone, a step",
                number: true,
                cell: (row) => {
                  const found = alone.get(row.field);
                  return found ? secondsChange(found.seconds) : together;
                },
              },
              {
                name: "bytes",
                title: "Alone, memory",
                number: true,
                cell: (row) => bytesChange(alone.get(row.field)?.bytes),
              },
            ]
          : []
      }
    />
  );
}
