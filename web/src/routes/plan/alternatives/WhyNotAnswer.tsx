import type { PlanAnswer } from "../../../api/queries/plans";
import type { WhyNot } from "../../../api/queries/variants";
import { DataTable } from "../../../components/DataTable";
import { count } from "../../../lib/format";
import { FieldChanges } from "../../diff/FieldChanges";
import { MemoryChanges } from "../../diff/MemoryChanges";
import { TimeChanges } from "../../diff/TimeChanges";
import styles from "./Alternatives.module.css";
import { SolveChoice } from "./SolveChoice";

interface Props {
  plan: PlanAnswer;
  answer: WhyNot;
}

/** The answer in the API's own sentence, and what stands behind it. */
export function WhyNotAnswer({ plan, answer }: Props) {
  return (
    <div className={styles.answer} role="status" data-possible={answer.possible}>
      <p className={styles.sentence}>{answer.sentence}</p>
      {answer.possible ? (
        !answer.already_so && <Possible plan={plan} answer={answer} />
      ) : (
        <Impossible answer={answer} />
      )}
    </div>
  );
}

function Possible({ plan, answer }: Props) {
  return (
    <>
      <p className={styles.actions}>
        <SolveChoice plan={plan} pins={answer.pins} label="Keep it as a plan" />
      </p>
      <div className={styles.columns}>
        <TimeChanges terms={answer.breakdown_s} a="this plan" b="yours" />
        <MemoryChanges terms={answer.peak_memory_bytes} a="this plan" b="yours" />
      </div>
      <FieldChanges
        changes={answer.strategy}
        caption="What differs in the strategy"
        a="This plan"
        b="Yours"
      />
    </>
  );
}

function Impossible({ answer }: { answer: WhyNot }) {
  const pruned = Object.entries(answer.pruned ?? {}).sort(([, a], [, b]) => b - a);
  return (
    <>
      {answer.rules.length > 1 && (
        <ul className={styles.notes}>
          {answer.rules.slice(1).map((each) => (
            <li key={each}>{each}</li>
          ))}
        </ul>
      )}
      {answer.relaxations.length > 0 && (
        <p>
          <strong>What would help: </strong>
          {answer.relaxations.join("; ")}
        </p>
      )}
      {pruned.length > 0 && (
        <DataTable
          caption="Strategies that have it, by why they fell"
          columns={[
            { name: "reason", title: "Reason", cell: ([reason]) => reason },
            { name: "number", title: "Strategies", number: true, cell: ([, number]) => count(number) },
          ]}
          rows={pruned}
          rowKey={([reason]) => reason}
        />
      )}
    </>
  );
}
