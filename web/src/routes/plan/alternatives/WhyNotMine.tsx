import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, lazy, Suspense } from "react";
import { ApiProblem } from "../../../api/problem";
import type { PlanAnswer } from "../../../api/queries/plans";
import { readStrategy, whyNotQuery } from "../../../api/queries/variants";
import { Button } from "../../../components/Button";
import { Field } from "../../../components/Field";
import { Loading } from "../../../components/Loading";
import { ProblemNotice } from "../../../components/ProblemNotice";
import { readAlternativesSearch } from "../alternatives.search";
import styles from "./Alternatives.module.css";
import { useDraftText } from "./draftText";
import { ScriptNotes } from "./ScriptNotes";

/** Shown once a question was asked: its code may come after the first view. */
const WhyNotAnswer = lazy(async () => ({ default: (await import("./WhyNotAnswer")).WhyNotAnswer }));

/** Type `tp=4,pp=8` or paste a launch script: what the best plan with it would take, or why there is none. */
export function WhyNotMine({ plan }: { plan: PlanAnswer }) {
  const { whyNot } = readAlternativesSearch.full(useSearch({ from: "/plans/$planId/alternatives" }));
  const navigate = useNavigate();
  const { text, write, sent } = useDraftText(plan.plan_id, whyNot);
  const reading = useMutation({
    mutationFn: readStrategy,
    onSuccess: (read) => {
      sent(read.pins);
      return navigate({
        to: ".",
        search: (before) => ({ ...before, whyNot: read.pins }),
        resetScroll: false,
      });
    },
  });
  const answer = useQuery({ ...whyNotQuery(plan.plan_id, whyNot), enabled: whyNot !== "" });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    reading.mutate(text);
  };
  const findings = [reading.error, answer.error].flatMap((error) =>
    error instanceof ApiProblem ? (error.problem.errors ?? []) : [],
  );
  const unplaced = [reading.error, answer.error].find(
    (error) => error && !(error instanceof ApiProblem && error.problem.errors?.length),
  );
  return (
    <section className={styles.whyNot} aria-labelledby="why-not">
      <h2 id="why-not">Why not mine?</h2>
      <form onSubmit={submit}>
        <Field
          label="Your configuration"
          note={
            <>
              <code>tp=4,pp=8</code>, or a whole Megatron-LM launch script. It is read, never run.
            </>
          }
          findings={findings}
        >
          {(control) => (
            <textarea
              {...control}
              rows={Math.min(12, Math.max(2, text.split("\n").length))}
              value={text}
              spellCheck={false}
              className={styles.configuration}
              onChange={(event) => {
                reading.reset();
                write(event.target.value);
              }}
              onKeyDown={(event) => {
                if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit(event);
              }}
            />
          )}
        </Field>
        <p className={styles.actions}>
          <Button type="submit" look="primary" disabled={reading.isPending || text.trim() === ""}>
            {reading.isPending ? "Reading\u2026" : "Ask"}
          </Button>
          <span className={styles.soft}>
            or <kbd>Ctrl</kbd> <kbd>Enter</kbd>
          </span>
        </p>
      </form>
      {unplaced && <ProblemNotice error={unplaced} />}
      {reading.data && <ScriptNotes read={reading.data} plan={plan} />}
      {whyNot && answer.isPending && <Loading label="answer" height={120} />}
      {whyNot && answer.data && (
        <Suspense fallback={<Loading label="answer" height={120} />}>
          <WhyNotAnswer plan={plan} answer={answer.data} />
        </Suspense>
      )}
    </section>
  );
}
