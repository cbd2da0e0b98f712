import { useQueries } from "@tanstack/react-query";
import { problemBoundsQuery } from "../../api/queries/questions";
import { Button } from "../../components/Button";
import { seconds } from "../../lib/format";
import { type WayOut, waysOut } from "../../lib/waysOut";
import type { Draft } from "../new-plan.search";
import styles from "./NewPlan.module.css";
import { checkable, type Documents, questionOf } from "./question";

interface Props {
  hints: readonly string[];
  draft: Draft;
  documents: Documents;
  onChoose: (way: WayOut) => void;
}

/** What would fit: each a press, with the least time that a step then takes. */
export function WaysOut({ hints, draft, documents, onChoose }: Props) {
  const { ways, others } = waysOut(hints, draft);
  const bounds = useQueries({
    queries: ways.map((way) =>
      problemBoundsQuery(checkable(questionOf({ ...draft, ...way.change }, documents))),
    ),
  });
  return (
    <div className={styles.ways}>
      {ways.length > 0 && <strong>What would fit:</strong>}
      {ways.map((way, index) => {
        const least_s = bounds[index]?.data?.least_step_s;
        return (
          <Button key={way.words} onClick={() => onChoose(way)}>
            {way.words}
            {least_s != null && <span className={styles.price}>at least {seconds(least_s, 3)} a step</span>}
          </Button>
        );
      })}
      {others.map((each) => (
        <p key={each}>{each}</p>
      ))}
    </div>
  );
}
