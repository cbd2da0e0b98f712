import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { asProblem } from "../../api/problem";
import { type PlanAnswer, planQuery } from "../../api/queries/plans";
import { Button } from "../../components/Button";
import { useKept } from "../../lib/kept";
import { useKeys } from "../../lib/keys";
import { Controls } from "./what-if/Controls";
import { type Chosen, type FieldName, NOTHING } from "./what-if/fields";
import { placeFindings } from "./what-if/findings";
import { Outcome } from "./what-if/Outcome";
import { changedFields, estimateQuestion } from "./what-if/question";
import { Resolve } from "./what-if/Resolve";
import { useLiveEstimate } from "./what-if/useLiveEstimate";
import styles from "./what-if/WhatIf.module.css";
import { readWhatIfSearch } from "./what-if.search";

/** A drag writes one address, when it stands still. */
const WRITE_AFTER_MS = 400;

/** Turn the plan's choices and the machine's figures, and see what it does. */
export function WhatIf() {
  const { planId } = useParams({ from: "/plans/$planId/what-if" });
  const { data: plan } = useQuery(planQuery(planId));
  return plan ? <Board key={plan.plan_id} plan={plan} /> : null;
}

function Board({ plan }: { plan: PlanAnswer }) {
  const { job, solved, ...said } = readWhatIfSearch.full(useSearch({ from: "/plans/$planId/what-if" }));
  const navigate = useNavigate();
  const write = useCallback(
    (part: object, replace: boolean) =>
      void navigate({
        to: ".",
        search: (before: object) => ({ ...before, ...part }),
        replace,
        resetScroll: false,
      }),
    [navigate],
  );
  const [chosen, setChosen] = useKept<Chosen>(said, (next) => write(next, false), WRITE_AFTER_MS);
  const key = JSON.stringify(chosen);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key stands for what is chosen
  const question = useMemo(() => estimateQuestion(plan, chosen), [plan, key]);
  const live = useLiveEstimate(key, question);
  const changed = changedFields(chosen);
  const findings = live.error ? (asProblem(live.error).errors ?? []) : [];
  const placed = placeFindings(findings, changed);
  const turn = (next: (before: Chosen) => Chosen) => {
    // A search that was asked for answers the pins of then: other pins, another search.
    if (job || solved) write({ job: "", solved: "" }, true);
    setChosen(next);
  };
  const change = (name: FieldName, value: string) => turn((before) => ({ ...before, [name]: value }));
  const reset = () => turn(() => NOTHING);
  useKeys([{ keys: "r", does: "Back to the plan's own values", group: "What-if", run: reset }]);
  return (
    <div className={styles.screen}>
      <section className={styles.controls} aria-label="What to change">
        <div className={styles.head}>
          <h2>What if</h2>
          <Button onClick={reset} disabled={changed.length === 0}>
            Reset to the plan
          </Button>
        </div>
        <Controls
          plan={plan}
          chosen={chosen}
          estimated={live.answered === key ? live.answer?.plan.strategy : undefined}
          change={change}
          findings={placed.at}
        />
      </section>
      <div className={styles.outcome}>
        <Outcome plan={plan} live={live} asked={key} changed={changed.length} rest={placed.rest} />
        <Resolve
          plan={plan}
          chosen={chosen}
          job={job}
          solved={solved}
          onAsked={(part) => write({ job: "", solved: "", ...part }, true)}
        />
      </div>
    </div>
  );
}
