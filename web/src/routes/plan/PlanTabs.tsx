import { Link, useLocation } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import styles from "./Plan.module.css";
import { TABS } from "./tabs";

/** The views of a plan.  Where there is no room for all of them, the open one is in sight. */
export function PlanTabs({ planId }: { planId: string }) {
  const bar = useRef<HTMLElement>(null);
  const path = useLocation({ select: (location) => location.pathname });
  useEffect(() => {
    // /plans/<plan>/<view>; the overview has none.
    const view = (address: string) => address.split("/")[3] ?? "";
    const at = TABS.findIndex((tab) => view(tab.to) === view(path));
    const open = bar.current?.querySelectorAll("a")[at];
    if (!bar.current || !open) return;
    // Only the bar moves: scrollIntoView would move the page too.
    bar.current.scrollLeft = open.offsetLeft - (bar.current.clientWidth - open.offsetWidth) / 2;
  }, [path]);
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
