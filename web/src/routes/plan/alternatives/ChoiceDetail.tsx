import type { PlanAnswer } from "../../../api/queries/plans";
import { lookOf, TIME_TERMS } from "../../../charts/terms";
import { Button } from "../../../components/Button";
import { change, gibibytes, percent, seconds, secondsChange } from "../../../lib/format";
import styles from "./Alternatives.module.css";
import { type Choice, KIND_NAMES } from "./choices";
import { SolveChoice } from "./SolveChoice";
import type { ChoicesView } from "./useChoices";

interface Props {
  plan: PlanAnswer;
  choice: Choice;
  view: ChoicesView;
}

const MOST_TERMS = 4;

/** The choice that is looked at: what it would do, what it pays, and the plan that the search makes of it. */
export function ChoiceDetail({ plan, choice, view }: Props) {
  const terms = choice.terms_s
    .filter((each) => each.change !== 0)
    .sort((a, b) => Math.abs(b.change) - Math.abs(a.change))
    .slice(0, MOST_TERMS);
  const pinned = view.search.pinned.includes(choice.id);
  return (
    <section className={styles.detail} aria-live="polite">
      <h2>{choice.name}</h2>
      <p className={styles.soft}>
        {KIND_NAMES[choice.kind]}
        {choice.reason && <>: {choice.reason}</>}
      </p>
      {choice.step_time_s !== null && (
        <dl className={styles.facts}>
          <dt>Step time</dt>
          <dd>
            {seconds(choice.step_time_s)}
            {choice.kind !== "plan" && ` (${change(choice.slower_by, 2)})`}
          </dd>
          <dt>Peak memory</dt>
          <dd>
            {gibibytes(choice.peak_memory_bytes)} (
            {percent((choice.peak_memory_bytes ?? 0) / plan.memory_limit_bytes)} of the limit)
          </dd>
          {terms.map((each) => (
            <TermLine key={each.term} term={each.term} value={each.change} />
          ))}
        </dl>
      )}
      <p className={styles.actions}>
        {choice.kind !== "illegal" && (
          <Button aria-pressed={pinned} onClick={() => view.pin(choice.id)}>
            {pinned ? "Unpin" : "Pin"}
          </Button>
        )}
        {choice.pins && choice.kind !== "illegal" && (
          <SolveChoice key={choice.id} plan={plan} pins={choice.pins} />
        )}
      </p>
    </section>
  );
}

function TermLine({ term, value }: { term: string; value: number }) {
  return (
    <>
      <dt>{lookOf(TIME_TERMS, term).label}</dt>
      <dd>{secondsChange(value)}</dd>
    </>
  );
}
