/** How does one group stand out?  All else fades; its members keep their colours and are joined by a line. */

import { chipRect, type Scene } from "./paint";

/** More members than this are shown by colour alone: their line would cover the map. */
const MOST_JOINED = 256;
const SERIES = 8;

export interface Focus {
  readonly rank: number;
  readonly members: readonly number[];
}

export function paintGroup(context: CanvasRenderingContext2D, scene: Scene, focus: Focus | undefined): void {
  const { width, height } = scene.frame;
  context.clearRect(0, 0, width, height);
  if (!focus) return;
  context.globalAlpha = 0.66;
  context.fillStyle = scene.ink.paper;
  context.fillRect(0, 0, width, height);
  context.globalAlpha = 1;
  if (focus.members.length > 1 && focus.members.length <= MOST_JOINED) join(context, scene, focus.members);
  for (const member of focus.members) paintMember(context, scene, member);
  mark(context, scene, focus.rank);
}

function paintMember(context: CanvasRenderingContext2D, scene: Scene, rank: number): void {
  const rect = chipRect(scene, rank);
  if (!rect) return;
  const index = scene.indices[rank] as number;
  // A member of one px would be lost among 16,000.
  const size = Math.max(rect.width, 4);
  context.fillStyle = scene.ink.series[index % SERIES] ?? "";
  context.fillRect(rect.x, rect.y, size, size);
  context.strokeStyle = scene.ink.ink;
  context.lineWidth = size >= 12 ? 1.5 : 1;
  context.strokeRect(rect.x, rect.y, size, size);
  if (size < 15) return;
  context.fillStyle = scene.ink.onSeries;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.font = `600 ${Math.min(22, size * 0.42)}px ${scene.ink.font}`;
  context.fillText(String(index), rect.x + size / 2, rect.y + size * (size >= 40 ? 0.4 : 0.52));
  if (size < 40) return;
  context.font = `400 ${Math.min(12, size * 0.22)}px ${scene.ink.font}`;
  context.fillText(`rank ${rank}`, rect.x + size / 2, rect.y + size * 0.72, size - 4);
}

function join(context: CanvasRenderingContext2D, scene: Scene, members: readonly number[]): void {
  const { scale, left, top } = scene.projection;
  context.strokeStyle = scene.ink.ink;
  context.lineWidth = 1.25;
  context.globalAlpha = 0.5;
  context.beginPath();
  members.forEach((member, index) => {
    const x = ((scene.corners[2 * member] as number) + 0.5 - left) * scale;
    const y = ((scene.corners[2 * member + 1] as number) + 0.5 - top) * scale;
    if (index === 0) context.moveTo(x, y);
    else context.lineTo(x, y);
  });
  context.stroke();
  context.globalAlpha = 1;
}

function mark(context: CanvasRenderingContext2D, scene: Scene, rank: number): void {
  const rect = chipRect(scene, rank);
  if (!rect) return;
  const size = Math.max(rect.width, 6);
  for (const [colour, width, out] of [
    [scene.ink.paper, 5, 3],
    [scene.ink.focus, 2.5, 3],
  ] as const) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.strokeRect(rect.x - out, rect.y - out, size + 2 * out, size + 2 * out);
  }
}
