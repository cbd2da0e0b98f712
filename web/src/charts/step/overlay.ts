/** What lies above the rows: the critical path, one micro-batch on all ranks, the action that is selected. */

import { at, rankOf, type StepColumns } from "./columns";
import { paintAction, type Scene } from "./paint";
import { topOf } from "./rows";
import { placesOfMicrobatch, sourceOf } from "./waiting";
import { pixelOf } from "./window";

export interface Marked {
  readonly critical: boolean;
  /** -1 = none. */
  readonly microbatch: number;
  readonly selected: number | undefined;
  /** Where the pointer is. */
  readonly time_ns: number | undefined;
}

type Canvas = CanvasRenderingContext2D;

const OUTLINED_PX = 8;

export function paintOverlay(canvas: Canvas, scene: Scene, marked: Marked): void {
  const { window, width, rows, brush } = scene;
  canvas.clearRect(0, 0, width, rows.height);
  if (marked.microbatch >= 0) paintMicrobatch(canvas, scene, marked.microbatch);
  if (marked.critical) paintCritical(canvas, scene);
  if (marked.selected !== undefined) outline(canvas, scene, marked.selected, 2);
  if (marked.time_ns === undefined) return;
  canvas.fillStyle = brush.ink;
  canvas.globalAlpha = 0.5;
  canvas.fillRect(Math.round(pixelOf(marked.time_ns, window, width)), 0, 1, rows.height);
  canvas.globalAlpha = 1;
}

/** Everything else steps back behind a veil; lines follow the micro-batch from rank to rank. */
function paintMicrobatch(canvas: Canvas, scene: Scene, microbatch: number): void {
  const { step, width, rows, brush } = scene;
  canvas.fillStyle = brush.paper;
  canvas.globalAlpha = 0.68;
  canvas.fillRect(0, 0, width, rows.height);
  canvas.globalAlpha = 1;
  canvas.strokeStyle = brush.ink;
  canvas.lineWidth = 1;
  const places = placesOfMicrobatch(step, microbatch);
  canvas.beginPath();
  for (const place of places) {
    const source = sourceOf(step, place);
    if (source !== undefined && rankOf(step, source) !== rankOf(step, place))
      link(canvas, scene, source, place);
  }
  canvas.stroke();
  for (const place of places) {
    if (!isSeen(scene, place)) continue;
    paintAction(canvas, scene, rankOf(step, place), place, 2);
    outline(canvas, scene, place, 1);
  }
}

function isSeen({ step, window }: Scene, place: number): boolean {
  return at(step.end_ns, place) >= window.from_ns && at(step.start_ns, place) <= window.to_ns;
}

function outline(
  canvas: Canvas,
  { step, window, width, rows, brush }: Scene,
  place: number,
  line: number,
): void {
  const from = Math.max(-4, pixelOf(at(step.start_ns, place), window, width));
  const to = Math.min(width + 4, pixelOf(at(step.end_ns, place), window, width));
  // Around a thin mark the line would be all that is seen.
  if (to < 0 || from > width || (line === 1 && to - from < OUTLINED_PX)) return;
  const top = topOf(rows, rankOf(step, place));
  canvas.strokeStyle = line > 1 ? brush.accent : brush.ink;
  canvas.lineWidth = line;
  canvas.strokeRect(from, top, Math.max(2, to - from - 1), rows.compute_px);
}

/** A line from the end of one action to the beginning of another. */
function link(canvas: Canvas, { step, window, width, rows }: Scene, from: number, to: number): void {
  const [x1, x2] = [
    pixelOf(at(step.end_ns, from), window, width),
    pixelOf(at(step.start_ns, to), window, width),
  ];
  if (x2 < 0 || x1 > width) return;
  const middle = (place: number) => topOf(rows, rankOf(step, place)) + rows.compute_px / 2;
  canvas.moveTo(x1, middle(from));
  canvas.lineTo(x2, middle(to));
}

const CRITICAL_PX = 3;

/** A bar along the top of every action of the path and a line wherever it changes ranks. */
function paintCritical(canvas: Canvas, scene: Scene): void {
  const { step, window, width, rows, brush } = scene;
  const painted = new Float64Array(step.num_ranks).fill(-1);
  canvas.fillStyle = brush.ink;
  canvas.strokeStyle = brush.ink;
  canvas.lineWidth = 1.5;
  canvas.beginPath();
  let [before, linked] = [-1, -2];
  for (const place of step.critical) {
    const cause = before;
    before = place;
    if (!isSeen(scene, place) && !(cause >= 0 && isSeen(scene, cause))) continue;
    const rank = rankOf(step, place);
    const from = Math.max(at(painted, rank), pixelOf(at(step.start_ns, place), window, width), 0);
    const to = Math.min(width, pixelOf(at(step.end_ns, place), window, width));
    if (to > from) {
      canvas.fillRect(from, topOf(rows, rank), Math.max(1, to - from), CRITICAL_PX);
      painted[rank] = to;
    }
    const turns = cause >= 0 && rankOf(step, cause) !== rank;
    if (turns && pixelOf(at(step.end_ns, cause), window, width) - linked >= 2) {
      linked = pixelOf(at(step.end_ns, cause), window, width);
      canvas.moveTo(linked, topOf(rows, rankOf(step, cause)) + 1);
      canvas.lineTo(pixelOf(at(step.start_ns, place), window, width), topOf(rows, rank) + 1);
    }
  }
  canvas.stroke();
}

/** How much of the critical path lies on each rank: seconds. */
export function criticalTime(step: StepColumns): readonly number[] {
  const sums = new Array<number>(step.num_ranks).fill(0);
  for (const place of step.critical) {
    const rank = rankOf(step, place);
    sums[rank] = (sums[rank] ?? 0) + (at(step.end_ns, place) - at(step.start_ns, place)) / 1e9;
  }
  return sums;
}
