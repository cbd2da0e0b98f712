import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { explanationQuery, planQuery } from "../../api/queries/plans";
import { Loading } from "../../components/Loading";
import { ProblemNotice } from "../../components/ProblemNotice";
import styles from "./alternatives/Alternatives.module.css";
import { ChoicesFigure } from "./alternatives/ChoicesFigure";
import { ChoicesTable } from "./alternatives/ChoicesTable";
import { choicesOf } from "./alternatives/choices";
import { PinnedBar } from "./alternatives/PinnedBar";
import { useChoices } from "./alternatives/useChoices";
import { WhyNotMine } from "./alternatives/WhyNotMine";

/** Shown once something is chosen: its code may come after the first view. */
const ChoiceDetail = lazy(async () => ({
  default: (await import("./alternatives/ChoiceDetail")).ChoiceDetail,
}));

/** What else could run: step time against memory, each with its reason; pin two to compare; why not mine? */
export function Alternatives() {
  const { planId } = useParams({ from: "/plans/$planId/alternatives" });
  const { data: plan } = useQuery(planQuery(planId));
  const why = useQuery(explanationQuery(planId));
  const choices = plan ? choicesOf(plan, why.data) : [];
  const view = useChoices(choices);
  if (!plan) return null;
  const chosen = choices.find((each) => each.id === view.search.choice);
  return (
    <div className={styles.screen}>
      {why.isPending && <Loading label="alternatives" height={380} lines={6} />}
      {why.error && <ProblemNotice error={why.error} onRetry={() => void why.refetch()} />}
      {why.isSuccess && (
        <div className={styles.picture}>
          <ChoicesFigure plan={plan} choices={choices} selected={view.search.choice} onSelect={view.select} />
          <aside className={styles.side} aria-label="The chosen alternative">
            {chosen ? (
              <Suspense fallback={<Loading label="alternative" height={120} />}>
                <ChoiceDetail plan={plan} choice={chosen} view={view} />
              </Suspense>
            ) : (
              <p className={styles.hint}>
                Choose a mark or a row, or walk with <kbd>j</kbd> and <kbd>k</kbd>. <kbd>p</kbd> pins; two
                pinned choices can be compared.
              </p>
            )}
            <PinnedBar plan={plan} choices={choices} view={view} />
          </aside>
        </div>
      )}
      {why.isSuccess && (
        <ChoicesTable choices={view.rows} limit_bytes={plan.memory_limit_bytes} view={view} />
      )}
      <WhyNotMine plan={plan} />
    </div>
  );
}
