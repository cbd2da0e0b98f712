import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { planQuery } from "../api/queries/plans";
import { diffQuery } from "../api/queries/variants";
import { Loading } from "../components/Loading";
import { PageHead } from "../components/PageHead";
import { ProblemNotice } from "../components/ProblemNotice";
import { useKeys } from "../lib/keys";
import { comparable } from "./diff/alone";
import styles from "./diff/Diff.module.css";
import { FieldChanges } from "./diff/FieldChanges";
import { MemoryChanges } from "./diff/MemoryChanges";
import { Side } from "./diff/Side";
import { StageChanges } from "./diff/StageChanges";
import { StrategyChanges } from "./diff/StrategyChanges";
import { TimeChanges } from "./diff/TimeChanges";

/** Two plans side by side, and only what differs, with the seconds and bytes that it buys. */
export function Diff() {
  const { a, b } = useParams({ from: "/diff/$a/$b" });
  const navigate = useNavigate();
  const [left, right, diff] = [useQuery(planQuery(a)), useQuery(planQuery(b)), useQuery(diffQuery(a, b))];
  useKeys([
    {
      keys: "x",
      does: "Swap the two plans",
      group: "Comparison",
      run: () => void navigate({ to: "/diff/$a/$b", params: { a: b, b: a } }),
    },
  ]);
  const failed = [left, right, diff].find((each) => each.error);
  if (failed) return <ProblemNotice error={failed.error} onRetry={() => void failed.refetch()} />;
  return (
    <div className={styles.screen}>
      <PageHead title="Plan a against plan b">
        <Link to="/diff/$a/$b" params={{ a: b, b: a }}>
          Swap a and b
        </Link>
      </PageHead>
      {left.data && right.data ? (
        <div className={styles.sides}>
          <Side name="a" plan={left.data} />
          <Side name="b" plan={right.data} against={left.data} />
        </div>
      ) : (
        <Loading label="plans" height={190} lines={5} />
      )}
      {diff.isPending && <Loading label="comparison" height={300} lines={6} />}
      {diff.data && (
        <>
          <p className={styles.summary} role="status">
            {diff.data.summary}
          </p>
          {!diff.data.identical && (
            <>
              <div className={styles.columns}>
                <TimeChanges terms={diff.data.breakdown_s} a="a" b="b" />
                <MemoryChanges terms={diff.data.peak_memory_bytes} a="a" b="b" />
              </div>
              {!comparable(diff.data) && (
                <p className={styles.note}>
                  The two answer different questions: seconds of a step are comparable only where the batch is
                  the same.
                </p>
              )}
              <div className={styles.columns}>
                <StrategyChanges diff={diff.data} />
                <FieldChanges
                  changes={diff.data.problem}
                  caption="What differs in the question"
                  a="a"
                  b="b"
                />
              </div>
              <StageChanges stages={diff.data.stages} />
            </>
          )}
        </>
      )}
    </div>
  );
}
