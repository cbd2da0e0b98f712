import { useQuery } from "@tanstack/react-query";
import { Outlet, useParams } from "@tanstack/react-router";
import { planQuery } from "../api/queries/plans";
import { Loading } from "../components/Loading";
import { ProblemNotice } from "../components/ProblemNotice";
import { useKeys } from "../lib/keys";
import { Headline } from "./plan/Headline";
import styles from "./plan/Plan.module.css";
import { PlanTabs } from "./plan/PlanTabs";
import { keysOfTab, TABS, useTabNavigation } from "./plan/tabs";

/** As high as the headline is, which breaks into more lines where there is less room: what stands below stays there. */
const HEADLINE_HEIGHT = "max(278px, 812px - 35vw)";

/** One plan: its headline, and the tab that looks closer. */
export function PlanScreen() {
  const { planId } = useParams({ from: "/plans/$planId" });
  const plan = useQuery(planQuery(planId));
  const open = useTabNavigation(planId);
  useKeys(
    TABS.map((tab, index) => ({
      keys: keysOfTab(index),
      does: tab.label,
      group: "Plan",
      run: () => open(index),
    })),
  );
  if (plan.error) return <ProblemNotice error={plan.error} onRetry={() => void plan.refetch()} />;
  return (
    <div className={styles.screen}>
      {plan.data ? (
        <Headline plan={plan.data} />
      ) : (
        <Loading label="plan" height={HEADLINE_HEIGHT} lines={4} />
      )}
      <PlanTabs planId={planId} />
      <Outlet />
    </div>
  );
}
