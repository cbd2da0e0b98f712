import { useNavigate, useSearch } from "@tanstack/react-router";
import { rankOf, type StepColumns } from "../../../charts/step/columns";
import type { TimeWindow } from "../../../charts/step/window";
import { readTimelineSearch } from "../timeline.search";

export interface Selection {
  /** The window that the address asks for; -1 = the whole step. */
  readonly asked: TimeWindow;
  readonly rank: number;
  readonly action: number | undefined;
  /** -1 = none. */
  readonly microbatch: number;
  readonly critical: boolean;
  readonly selectRank: (rank: number) => void;
  /** `walked` = by keys: a walk is one step back, not a hundred. */
  readonly selectAction: (place: number | undefined, walked?: boolean) => void;
  readonly pinMicrobatch: (microbatch: number) => void;
  readonly setCritical: (shown: boolean) => void;
  readonly clear: () => void;
}

/** What stands out, as the address says it; what the step does not have is none. */
export function useSelection(step: StepColumns): Selection {
  const wanted = readTimelineSearch.full(useSearch({ from: "/plans/$planId/timeline" }));
  const navigate = useNavigate({ from: "/plans/$planId/timeline" });
  const change = (kept: Parameters<typeof readTimelineSearch.full>[0], replace = false) =>
    void navigate({ to: ".", search: (before) => ({ ...before, ...kept }), replace, resetScroll: false });
  const action = wanted.action >= 0 && wanted.action < step.kind.length ? wanted.action : undefined;
  return {
    asked: { from_ns: wanted.from_ns, to_ns: wanted.to_ns },
    action,
    rank:
      wanted.rank >= 0
        ? Math.min(wanted.rank, step.num_ranks - 1)
        : action === undefined
          ? 0
          : rankOf(step, action),
    microbatch: wanted.microbatch < step.num_microbatches ? wanted.microbatch : -1,
    critical: wanted.critical,
    selectRank: (rank) => change({ rank }, true),
    // The rank follows the action, until another one is chosen.
    selectAction: (place, walked = false) => change({ action: place, rank: undefined }, walked),
    pinMicrobatch: (microbatch) => change({ microbatch }, true),
    setCritical: (critical) => change({ critical }),
    clear: () => change({ action: undefined, microbatch: undefined }),
  };
}
