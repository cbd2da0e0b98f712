/** The rows of all ranks on a canvas: what each does, when it idles, what it sends.  See detail.ts for how much. */

import type { Brush, Ink } from "./brush";
import { at, firstAbove, type StepColumns } from "./columns";
import { isCrowded, sharesOf, stripsOf, type Visible, visibleOf } from "./detail";
import { type Rows, sendTopOf, topOf } from "./rows";
import { pixelOf, type TimeWindow } from "./window";

export interface Scene {
  readonly step: StepColumns;
  readonly window: TimeWindow;
  readonly width: number;
  readonly rows: Rows;
  readonly brush: Brush;
}

type Canvas = CanvasRenderingContext2D;

const SEPARATED_PX = 4;
const HATCHED_PX = 5;
const LETTER_PX = 30;
const NAME_PX = 130;

export function paintRows(canvas: Canvas, scene: Scene): void {
  const { step, width, rows, brush } = scene;
  canvas.fillStyle = brush.paper;
  canvas.fillRect(0, 0, width, rows.height);
  for (let rank = 0; rank < step.num_ranks; rank++) {
    paintIdle(canvas, scene, rank);
    const visible = visibleOf(step, rank, scene.window);
    if (isCrowded(visible, width)) paintShares(canvas, scene, rank, visible);
    else
      for (let place = visible.first; place < visible.end; place++)
        paintAction(canvas, scene, rank, place, 0);
    paintSends(canvas, scene, rank);
  }
}

/** The whole row as idle, and what follows the pipeline; actions are painted above. */
function paintIdle(canvas: Canvas, scene: Scene, rank: number): void {
  const { step, window, width, rows, brush } = scene;
  const top = topOf(rows, rank);
  const end = Math.min(width, pixelOf(step.makespan_ns, window, width));
  fill(
    canvas,
    { ...brush.idle, colour: brush.sunken },
    Math.max(0, pixelOf(0, window, width)),
    top,
    end,
    rows.compute_px,
  );
  if (end >= width) return;
  const last = Math.min(width, pixelOf(step.makespan_ns + step.after_ns, window, width));
  fill(canvas, brush.after, Math.max(0, end), top, last, rows.compute_px);
}

function fill(canvas: Canvas, ink: Ink, from: number, top: number, to: number, height: number): void {
  canvas.fillStyle = ink.colour;
  canvas.fillRect(from, top, to - from, height);
  if (!ink.hatch || to - from < HATCHED_PX) return;
  canvas.fillStyle = ink.hatch;
  canvas.fillRect(from, top, to - from, height);
}

/** One action, at least `least` pixels wide. */
export function paintAction(canvas: Canvas, scene: Scene, rank: number, place: number, least: number): void {
  const { step, window, width, rows, brush } = scene;
  const from = Math.max(-1, pixelOf(at(step.start_ns, place), window, width));
  const to = Math.min(width + 1, pixelOf(at(step.end_ns, place), window, width));
  const ink = brush.kinds[at(step.kind, place)];
  if (!ink || to < from) return;
  const length = Math.max(to - from, least);
  const top = topOf(rows, rank);
  fill(canvas, ink, from, top, from + length - (length > SEPARATED_PX ? 1 : 0), rows.compute_px);
  if (length < LETTER_PX) return;
  const name = length >= NAME_PX ? ink.label : ink.letter;
  const text = `${name} ${at(step.microbatch, place)}`;
  canvas.font = `500 11px ${brush.font}`;
  const room = canvas.measureText(text).width + 8;
  if (room > length) return;
  // A plate beneath the text: the hatch would cut through it.
  canvas.fillStyle = ink.colour;
  canvas.fillRect((from + to - room) / 2, top + rows.compute_px / 2 - 7, room, 14);
  canvas.fillStyle = brush.onMark;
  canvas.textAlign = "center";
  canvas.textBaseline = "middle";
  canvas.fillText(text, (from + to) / 2, top + rows.compute_px / 2 + 0.5);
}

/** How the time of each strip is shared: kinds above each other from the bottom; equal neighbours are one rectangle. */
function paintShares(canvas: Canvas, scene: Scene, rank: number, visible: Visible): void {
  const { step, window, width, rows, brush } = scene;
  const strips = stripsOf(visible, window, width);
  const shares = sharesOf(step, rank, strips);
  const kinds = step.kinds.length;
  const bottom = topOf(rows, rank) + rows.compute_px;
  const edges = new Float64Array(strips.count);
  const left = (strip: number) =>
    Math.round(pixelOf(strips.from_ns + strip * strips.strip_ns, window, width));
  for (let kind = 0; kind < kinds; kind++) {
    canvas.fillStyle = brush.kinds[kind]?.colour ?? brush.ink;
    let [begun, low, high] = [0, 0, 0];
    for (let strip = 0; strip <= strips.count; strip++) {
      const under = strip < strips.count ? at(edges, strip) : -1;
      const over = strip < strips.count ? under + at(shares, strip * kinds + kind) * rows.compute_px : -1;
      if (strip < strips.count) edges[strip] = over;
      const [next, nextHigh] = [Math.round(under), Math.round(over)];
      if (next === low && nextHigh === high) continue;
      if (high > low) canvas.fillRect(left(begun), bottom - high, left(strip) - left(begun), high - low);
      [begun, low, high] = [strip, next, nextHigh];
    }
  }
}

/** What the rank sends; what falls into the same pixels is painted once. */
function paintSends(canvas: Canvas, scene: Scene, rank: number): void {
  const { step, window, width, rows, brush } = scene;
  const { transfers } = step;
  const [low, high] = [at(transfers.offsets, rank), at(transfers.offsets, rank + 1)];
  const top = sendTopOf(rows, rank);
  let painted = -1;
  for (let each = firstAbove(transfers.start_ns, window.from_ns, low, high) - 1; each < high; each++) {
    if (each < low) continue;
    if (at(transfers.start_ns, each) > window.to_ns) break;
    const to = Math.min(width, pixelOf(at(transfers.end_ns, each), window, width));
    const from = Math.max(painted, pixelOf(at(transfers.start_ns, each), window, width));
    if (to < 0 || to - painted < 0.5) continue;
    fill(canvas, brush.send, from, top, Math.max(to, from + 1), rows.send_px);
    painted = Math.max(to, from + 1);
  }
}
