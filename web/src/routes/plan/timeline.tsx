import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { stepQuery } from "../../api/queries/step";
import { Empty } from "../../components/Empty";
import { Loading } from "../../components/Loading";
import { ProblemNotice } from "../../components/ProblemNotice";
import { TimelineScreen } from "./timeline/TimelineScreen";

/** The step of a plan, rank by rank. */
export function Timeline() {
  const { planId } = useParams({ from: "/plans/$planId" });
  const step = useQuery(stepQuery(planId));
  if (step.error) return <ProblemNotice error={step.error} onRetry={() => void step.refetch()} />;
  if (!step.data) return <Loading label="timeline" height={560} lines={8} />;
  if (step.data.kind.length === 0)
    return (
      <Empty title="Nothing runs in this step">
        <p>The plan has no micro-batch to draw. Its other tabs say what it holds.</p>
      </Empty>
    );
  return <TimelineScreen planId={planId} step={step.data} />;
}
