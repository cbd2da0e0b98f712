import { Link, useRouter } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import styles from "./Plan.module.css";
import { TABS } from "./tabs";

/** The views of a plan.  Where there is no room for all of them, the open one is in sight. */
export function PlanTabs({ planId }: { planId: string }) {
  const bar = useRef<HTMLElement>(null);
  const router = useRouter();
  useEffect(() => {
    const show = (path: string) => {
      const at = TABS.findIndex((tab) => viewOf(tab.to) === viewOf(path));
      const open = bar.current?.querySelectorAll("a")[at];
      if (!bar.current || !open) return;
      // Only the bar moves: scrollIntoView would move the page too.
      bar.current.scrollLeft = open.offsetLeft - (bar.current.clientWidth - open.offsetWidth) / 2;
    };
    show(router.latestLocation.pathname);
    // After the router, which puts the bar back to where it stood on the page before.
    return router.subscribe("onRendered", ({ toLocation }) => show(toLocation.pathname));
  }, [router]);
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

/** /plans/<plan>/<view>; the overview has none. */
function viewOf(path: string): string {
  return path.split("/")[3] ?? "";
}
