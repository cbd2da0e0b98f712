import { useState } from "react";
import { paintOverlay } from "../../../charts/step/overlay";
import { paintRows, type Scene } from "../../../charts/step/paint";
import { panned, timeAt, zoomed } from "../../../charts/step/window";
import { usePinch } from "../../../charts/usePinch";
import { HoverNote } from "./HoverNote";
import { type Hovered, hoveredAt, microbatchOf } from "./hovered";
import styles from "./Timeline.module.css";
import { useCanvas } from "./useCanvas";
import { type Range, useDrag } from "./useDrag";
import type { Selection } from "./useSelection";
import { type Moves, onArrow } from "./useTimelineKeys";
import type { Movable } from "./useTimeWindow";
import { useWheel } from "./useWheel";

interface Props {
  scene: Scene;
  view: Movable;
  moves: Moves;
  selection: Selection;
  hovered: Hovered | undefined;
  onHover: (hovered: Hovered | undefined) => void;
  sentence: string;
}

/** The rows themselves: two canvases, one for what is there and one for what stands out. */
export function Tracks({ scene, view, moves, selection, hovered, onHover, sentence }: Props) {
  const { step, window, width, rows, brush } = scene;
  const [range, setRange] = useState<Range>();
  const base = useCanvas(width, rows.height, (canvas) => paintRows(canvas, scene), [
    step,
    window,
    rows,
    brush,
  ]);
  const pointed = microbatchOf(step, hovered);
  const marked = {
    critical: selection.critical,
    microbatch: pointed >= 0 ? pointed : selection.microbatch,
    selected: selection.action,
    time_ns: hovered?.time_ns,
  };
  const overlay = useCanvas(width, rows.height, (canvas) => paintOverlay(canvas, scene, marked), [
    step,
    window,
    rows,
    brush,
    ...Object.values(marked),
  ]);
  const look = (x: number, y: number) => hoveredAt(step, rows, window, width, x, y);
  const wheel = useWheel(view, width);
  const fingers = usePinch(wheel, ({ factor, from, dx }) =>
    view.move((now) =>
      panned(zoomed(now, 1 / factor, timeAt(from.x, now, width), view.end_ns), -dx / width, view.end_ns),
    ),
  );
  const drag = useDrag({
    view,
    width,
    fingers,
    onRange: setRange,
    onPoint: (x, y) => onHover(look(x, y)),
    onLeave: () => onHover(undefined),
    onPress: (x, y) => {
      const found = look(x, y);
      if (found?.place !== undefined) selection.selectAction(found.place);
      else if (found) selection.selectRank(found.rank);
    },
  });
  return (
    <div
      ref={wheel}
      role="application"
      aria-roledescription="timeline"
      aria-label="Timeline: arrows move the window, full stop and comma walk over actions, question mark lists the keys"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a widget of its own, whose keys are listed under ?
      tabIndex={0}
      className={styles.surface}
      style={{ height: rows.height }}
      onKeyDown={(event) => onArrow(event, moves)}
      {...drag}
    >
      <canvas ref={base} role="img" aria-label={sentence} className={styles.layer} />
      {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: a canvas without tabindex takes no focus */}
      <canvas ref={overlay} aria-hidden="true" className={styles.layer} />
      {range && <div className={styles.range} style={{ left: range.from, width: range.to - range.from }} />}
      {hovered && !range && <HoverNote step={step} hovered={hovered} width={width} />}
    </div>
  );
}
