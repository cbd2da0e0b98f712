import { Link } from "@tanstack/react-router";
import { useRef } from "react";
import { useOpenInSight } from "../../lib/openInSight";
import styles from "./Plan.module.css";
import { TABS } from "./tabs";

/** The views of a plan.  Where there is no room for all of them, the open one is in sight. */
export function PlanTabs({ planId }: { planId: string }) {
  const bar = useRef<HTMLElement>(null);
  useOpenInSight(bar, placeOf);
  return (
    <nav ref={bar} className={styles.tabs} aria-label="Views of the plan">
      <ul>
        {TABS.map((tab) => (
          <li key={tab.to}>
            <Link to={tab.to} params={{ planId }} activeOptions={{ exact: true, includeSearch: false }}>
              {tab.label}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function placeOf(path: string): number {
  return TABS.findIndex((tab) => viewOf(tab.to) === viewOf(path));
}

/** /plans/<plan>/<view>; the overview has none. */
function viewOf(path: string): string {
  return path.split("/")[3] ?? "";
}
