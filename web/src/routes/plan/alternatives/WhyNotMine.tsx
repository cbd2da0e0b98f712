import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, lazy, Suspense } from "react";
import { ApiProblem } from "../../../api/problem";
import type { PlanAnswer } from "../../../api/queries/plans";
import { readScript } from "../../../api/queries/scripts";
import { readStrategy, type WhyNot, whyNotQuery } from "../../../api/queries/variants";
import { Button } from "../../../components/Button";
import { Field } from "../../../components/Field";
import { Loading } from "../../../components/Loading";
import { ProblemNotice } from "../../../components/ProblemNotice";
import { isLaunchScript } from "../../../lib/launchScript";
import { readAlternativesSearch } from "../alternatives.search";
import styles from "./Alternatives.module.css";
import { useDraftText } from "./draftText";

/** Shown once a question was asked: their code may come after the first view. */
const WhyNotAnswer = lazy(async () => ({ default: (await import("./WhyNotAnswer")).WhyNotAnswer }));
const ScriptNotes = lazy(async () => ({ default: (await import("./ScriptNotes")).ScriptNotes }));

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
  // A script's run is no wish: nothing of it is chosen.  Its text is too long for the address.
  const running = useMutation({
    mutationFn: (script: string) => readScript({ text: script, plan: plan.plan_id }),
  });
  const answer = useQuery({ ...whyNotQuery(plan.plan_id, whyNot), enabled: whyNot !== "" });
  const isReading = reading.isPending || running.isPending;
  const isWish = !running.data && !running.isPending;
  const shown = isWish ? whyNot && answer.data : (running.data?.why_not as WhyNot | undefined);
  const forget = () => {
    reading.reset();
    running.reset();
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    forget();
    (isLaunchScript(text) ? running : reading).mutate(text);
  };
  const errors = [reading.error, running.error, answer.error];
  const findings = errors.flatMap((error) =>
    error instanceof ApiProblem ? (error.problem.errors ?? []) : [],
  );
  const unplaced = errors.find(
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
                forget();
                write(event.target.value);
              }}
              onKeyDown={(event) => {
                if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit(event);
              }}
            />
          )}
        </Field>
        <p className={styles.actions}>
          <Button type="submit" look="primary" disabled={isReading || text.trim() === ""}>
            {isReading ? "Reading\u2026" : "Ask"}
          </Button>
          <span className={styles.soft}>
            or <kbd>Ctrl</kbd> <kbd>Enter</kbd>
          </span>
        </p>
      </form>
      {unplaced && <ProblemNotice error={unplaced} />}
      {running.isPending && <Loading label="answer" height={120} />}
      {running.data && (
        <Suspense fallback={<Loading label="notes" height={120} />}>
          <ScriptNotes read={running.data} plan={plan} />
        </Suspense>
      )}
      {isWish && whyNot && answer.isPending && <Loading label="answer" height={120} />}
      {shown && (
        <Suspense fallback={<Loading label="answer" height={120} />}>
          <WhyNotAnswer plan={plan} answer={shown} />
        </Suspense>
      )}
    </section>
  );
}
