/** Which views has a plan?  In the order of the tab bar and of the keys 1 to 9; what comes after has keys of its own. */

import { useNavigate } from "@tanstack/react-router";

export const TABS = [
  { to: "/plans/$planId", label: "Overview" },
  { to: "/plans/$planId/timeline", label: "Timeline" },
  { to: "/plans/$planId/memory", label: "Memory" },
  { to: "/plans/$planId/mesh", label: "Mesh" },
  { to: "/plans/$planId/alternatives", label: "Alternatives" },
  { to: "/plans/$planId/what-if", label: "What-if" },
  { to: "/plans/$planId/sensitivity", label: "Sensitivity" },
  { to: "/plans/$planId/goodput", label: "Goodput" },
  { to: "/plans/$planId/files", label: "Files" },
  { to: "/plans/$planId/diagnose", label: "Diagnose" },
] as const;

export const keysOfTab = (index: number): string => (index < 9 ? String(index + 1) : "g d");

export function useTabNavigation(planId: string): (index: number) => void {
  const navigate = useNavigate();
  return (index) => {
    const tab = TABS[index];
    if (tab) void navigate({ to: tab.to, params: { planId } });
  };
}
