import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { PlanAnswer } from "../../../api/queries/plans";
import { type Pins, variantQuery } from "../../../api/queries/variants";
import { Button } from "../../../components/Button";
import { Infeasible, isInfeasible } from "../../../components/Infeasible";
import { ProblemNotice } from "../../../components/ProblemNotice";
import styles from "./Alternatives.module.css";

interface Props {
  plan: PlanAnswer;
  pins: Pins;
  label?: string;
}

/** Makes a stored plan of the same question with the pins, and links to it and to the comparison. */
export function SolveChoice({ plan, pins, label = "Solve" }: Props) {
  const solving = useQuery({ ...variantQuery(plan, pins), enabled: false });
  return (
    <>
      {!solving.data && (
        <Button onClick={() => void solving.refetch()} disabled={solving.isFetching}>
          {solving.isFetching ? "Solving\u2026" : label}
        </Button>
      )}
      {solving.data && "plan" in solving.data && <SolvedLinks plan={plan} other={solving.data.plan} />}
      {solving.data && "job" in solving.data && (
        <Link to="/jobs/$jobId" params={{ jobId: solving.data.job }} search={{ follow: true }}>
          The search goes on as a job
        </Link>
      )}
      {solving.error &&
        (isInfeasible(solving.error) ? (
          <Infeasible error={solving.error} />
        ) : (
          <ProblemNotice error={solving.error} onRetry={() => void solving.refetch()} />
        ))}
    </>
  );
}

function SolvedLinks({ plan, other }: { plan: PlanAnswer; other: string }) {
  if (other === plan.plan_id) return <span className={styles.soft}>That is this plan.</span>;
  return (
    <>
      <Link to="/diff/$a/$b" params={{ a: plan.plan_id, b: other }}>
        Compare with this plan
      </Link>
      <Link to="/plans/$planId" params={{ planId: other }}>
        Open its plan
      </Link>
    </>
  );
}
