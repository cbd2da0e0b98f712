import { useMemo } from "react";
import type { Brush } from "../../../charts/step/brush";
import { at, type StepColumns } from "../../../charts/step/columns";
import { sharesOfAll } from "../../../charts/step/detail";
import { lengthOf } from "../../../charts/step/window";
import { exactly } from "./describe";
import styles from "./Timeline.module.css";
import { useBrushing } from "./useBrushing";
import { useCanvas } from "./useCanvas";
import type { Movable } from "./useTimeWindow";

export const MINIMAP_PX = 40;
const NARROWEST_PX = 2;
/** Actions of a rank in a strip: fewer, and strips differ by chance. */
const ACTIONS_A_STRIP = 4;

interface Props {
  step: StepColumns;
  brush: Brush;
  view: Movable;
  width: number;
}

/** All ranks together over the whole step, and which part of it is shown. */
export function Minimap({ step, brush, view, width }: Props) {
  const meaningful = step.kind.length / step.num_ranks / ACTIONS_A_STRIP;
  const strips = Math.max(1, Math.floor(Math.min(width / NARROWEST_PX, meaningful)));
  const shares = useMemo(
    () => sharesOfAll(step, { from_ns: 0, strip_ns: view.end_ns / strips, count: strips }),
    [step, strips, view.end_ns],
  );
  const canvas = useCanvas(width, MINIMAP_PX, (context) => paint(context, shares, strips, width, brush), [
    shares,
    brush,
  ]);
  const hand = useBrushing(view, width);
  const from = (view.window.from_ns / view.end_ns) * width;
  const length = Math.max(3, (lengthOf(view.window) / view.end_ns) * width);
  return (
    <div className={styles.minimap} style={{ height: MINIMAP_PX }} {...hand.surface}>
      {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: a canvas without tabindex takes no focus */}
      <canvas ref={canvas} aria-hidden="true" className={styles.layer} />
      <div className={styles.shade} style={{ left: 0, width: from }} />
      <div className={styles.shade} style={{ left: from + length, right: 0 }} />
      <div className={styles.brush} style={{ left: from, width: length }} />
      <Handle
        name="Beginning of the window"
        x={from}
        value={view.window.from_ns}
        end_ns={view.end_ns}
        {...hand.start}
      />
      <Handle
        name="End of the window"
        x={from + length}
        value={view.window.to_ns}
        end_ns={view.end_ns}
        {...hand.end}
      />
    </div>
  );
}

interface HandleProps {
  name: string;
  x: number;
  value: number;
  end_ns: number;
  onKeyDown: (event: React.KeyboardEvent) => void;
}

function Handle({ name, x, value, end_ns, onKeyDown }: HandleProps) {
  return (
    <div
      role="slider"
      tabIndex={0}
      className={styles.handle}
      style={{ left: x }}
      aria-label={name}
      aria-valuemin={0}
      aria-valuemax={end_ns}
      aria-valuenow={value}
      aria-valuetext={exactly(value)}
      onKeyDown={onKeyDown}
    />
  );
}

function paint(
  canvas: CanvasRenderingContext2D,
  shares: Float64Array,
  strips: number,
  width: number,
  brush: Brush,
): void {
  const kinds = brush.kinds.length;
  const left = (strip: number) => Math.round((strip * width) / strips);
  canvas.fillStyle = brush.sunken;
  canvas.fillRect(0, 0, width, MINIMAP_PX);
  for (let strip = 0; strip < strips; strip++) {
    let bottom = MINIMAP_PX;
    brush.kinds.forEach((ink, kind) => {
      const height = at(shares, strip * kinds + kind) * MINIMAP_PX;
      if (height <= 0) return;
      canvas.fillStyle = ink.colour;
      canvas.fillRect(left(strip), bottom - height, left(strip + 1) - left(strip), height);
      bottom -= height;
    });
  }
}
