import { at, type StepColumns } from "../../../charts/step/columns";
import { actionNear } from "../../../charts/step/detail";
import { panned, showing, timeAt, zoomed } from "../../../charts/step/window";
import { type KeyBinding, useKeys } from "../../../lib/keys";
import type { Selection } from "./useSelection";
import type { Movable } from "./useTimeWindow";

export const CLOSER = 0.7;
const PAN_SHARE = 0.15;

/** Moves that keys and buttons share. */
export function movesOf(step: StepColumns, view: Movable, selection: Selection) {
  const zoom = (factor: number) => view.move((now) => zoomed(now, factor, timeAt(0.5, now, 1), view.end_ns));
  const walkTo = (place: number) => {
    selection.selectAction(place, true);
    view.move((now) => showing(now, at(step.start_ns, place), at(step.end_ns, place), view.end_ns));
  };
  return {
    zoom,
    pan: (share: number) => view.move((now) => panned(now, share, view.end_ns)),
    fit: () => view.move(() => ({ from_ns: 0, to_ns: view.end_ns })),
    walkTo,
    /** The next action on the rank; without one, the first that is seen. */
    walk: (by: number) => {
      const [low, high] = [at(step.offsets, selection.rank), at(step.offsets, selection.rank + 1) - 1];
      const first = actionNear(step, selection.rank, view.window.from_ns);
      const { action } = selection;
      const onRank = action !== undefined && action >= low && action <= high;
      walkTo(onRank ? Math.min(high, Math.max(low, action + by)) : first);
    },
    /** The rank above or below; a selected action hands over to the one that runs nearest in time. */
    climb: (by: number) => {
      const rank = Math.min(step.num_ranks - 1, Math.max(0, selection.rank + by));
      if (selection.action === undefined) selection.selectRank(rank);
      else walkTo(actionNear(step, rank, at(step.start_ns, selection.action)));
    },
    stepMicrobatch: (by: number) => {
      const last = step.num_microbatches - 1;
      const from = selection.microbatch < 0 ? (by > 0 ? -1 : last + 1) : selection.microbatch;
      selection.pinMicrobatch(Math.min(last, Math.max(0, from + by)));
    },
  };
}

export type Moves = ReturnType<typeof movesOf>;

const GROUP = "Timeline";

export function useTimelineKeys(moves: Moves, selection: Selection): void {
  const key = (keys: string, does: string, run: () => void): KeyBinding => ({
    keys,
    does,
    group: GROUP,
    run,
  });
  useKeys([
    key("w", "Closer", () => moves.zoom(CLOSER)),
    key("s", "Farther", () => moves.zoom(1 / CLOSER)),
    key("a", "Earlier", () => moves.pan(-PAN_SHARE)),
    key("d", "Later", () => moves.pan(PAN_SHARE)),
    key("0", "The whole step", moves.fit),
    key(".", "Next action of the rank", () => moves.walk(1)),
    key(",", "Action before", () => moves.walk(-1)),
    key("j", "Rank below", () => moves.climb(1)),
    key("k", "Rank above", () => moves.climb(-1)),
    key("]", "Highlight the next micro-batch", () => moves.stepMicrobatch(1)),
    key("[", "Highlight the micro-batch before", () => moves.stepMicrobatch(-1)),
    key("c", "Critical path", () => selection.setCritical(!selection.critical)),
    key("Escape", "Select nothing", selection.clear),
    // Arrows belong to the page until the chart has the focus, so these rows only tell; onArrow listens.
    key("← →", "Earlier, later: when the chart has the focus", () => undefined),
    key("↑ ↓", "Closer, farther: when the chart has the focus", () => undefined),
  ]);
}

const ARROWS: Readonly<Record<string, (moves: Moves) => void>> = {
  ArrowLeft: (moves) => moves.pan(-PAN_SHARE),
  ArrowRight: (moves) => moves.pan(PAN_SHARE),
  ArrowUp: (moves) => moves.zoom(CLOSER),
  ArrowDown: (moves) => moves.zoom(1 / CLOSER),
};

/** Arrows, while the chart has the focus. */
export function onArrow(event: React.KeyboardEvent, moves: Moves): void {
  const found = ARROWS[event.key];
  if (!found || event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey)
    return;
  event.preventDefault();
  found(moves);
}
