import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { explanationQuery, planQuery } from "../../api/queries/plans";
import { Loading } from "../../components/Loading";
import { ProblemNotice } from "../../components/ProblemNotice";
import { BackEnds } from "./BackEnds";
import { BreakdownFigure } from "./BreakdownFigure";
import { Fastest } from "./Fastest";
import { LeansOn } from "./LeansOn";
import styles from "./Plan.module.css";
import { SearchNotes } from "./SearchNotes";
import { StageTable } from "./StageTable";

/** Why this plan, where its step goes, and what was assumed. */
export function Overview() {
  const { planId } = useParams({ from: "/plans/$planId" });
  const { data: plan } = useQuery(planQuery(planId));
  const why = useQuery(explanationQuery(planId));
  if (!plan) return null;
  return (
    <div className={styles.overview}>
      <Fastest plan={plan} />
      <BackEnds plan={plan} />
      <div className={styles.column}>
        <section>
          <h2>Why this plan</h2>
          {why.isPending && <Loading label="explanation" height={180} lines={5} />}
          {why.error && <ProblemNotice error={why.error} onRetry={() => void why.refetch()} />}
          <ul className={styles.sentences}>
            {why.data?.sentences.map((each) => (
              <li key={each}>{each}</li>
            ))}
          </ul>
        </section>
        <BreakdownFigure plan={plan} causes={why.data?.causes} />
        <StageTable plan={plan} />
      </div>
      <div className={styles.column}>
        <LeansOn planId={planId} />
        <SearchNotes plan={plan} />
      </div>
    </div>
  );
}
