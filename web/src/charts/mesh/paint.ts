/**
 * How is the map drawn?  Boxes, then chips, then what is written on them; only what the window shows, and only what
 * is large enough to be read.
 */

import type { Ink } from "../ink";
import { boxAt, type MapLayout, type Rect } from "./layout";
import type { Frame, Projection } from "./viewport";

export interface Scene {
  readonly layout: MapLayout;
  readonly projection: Projection;
  readonly frame: Frame;
  /** Corners of all devices, in units: x and y by turns. */
  readonly corners: Float32Array;
  /** Place of each rank in its group; devices beyond are idle. */
  readonly indices: Uint32Array;
  /** The ranks of each colour: a canvas changes colours slowly. */
  readonly bySeries: readonly (readonly number[])[];
  readonly ink: Ink;
}

const SERIES = 8;
const LABEL_FROM_PX = 9;
const INDEX_FROM_PX = 15;
const RANK_FROM_PX = 40;
const HATCH_FROM_PX = 9;
const ROUND_FROM_PX = 20;
const ROUND_BOX_FROM_PX = 80;

type Context = CanvasRenderingContext2D;

export function ranksBySeries(indices: Uint32Array): readonly (readonly number[])[] {
  const found: number[][] = Array.from({ length: SERIES }, () => []);
  for (const [rank, index] of indices.entries()) found[index % SERIES]?.push(rank);
  return found;
}

export function paintMap(context: Context, scene: Scene): void {
  context.clearRect(0, 0, scene.frame.width, scene.frame.height);
  paintBoxes(context, scene);
  scene.bySeries.forEach((ranks, series) => {
    context.fillStyle = scene.ink.series[series] ?? "";
    for (const rank of ranks) fillChip(context, scene, rank);
  });
  if (scene.projection.scale >= HATCH_FROM_PX) paintRounds(context, scene);
  if (scene.projection.scale >= INDEX_FROM_PX) paintIndices(context, scene);
  paintIdle(context, scene);
}

/** Chip of a device in px, or undefined when it is outside the window. */
export function chipRect(scene: Scene, device: number): Rect | undefined {
  const { scale, left, top } = scene.projection;
  const x = ((scene.corners[2 * device] as number) - left) * scale;
  const y = ((scene.corners[2 * device + 1] as number) - top) * scale;
  const seen = x > -scale && y > -scale && x < scene.frame.width && y < scene.frame.height;
  return seen ? { x, y, width: scale, height: scale } : undefined;
}

function fillChip(context: Context, scene: Scene, rank: number): void {
  const rect = chipRect(scene, rank);
  if (!rect) return;
  if (rect.width < ROUND_FROM_PX) context.fillRect(rect.x, rect.y, rect.width, rect.height);
  else {
    context.beginPath();
    context.roundRect(rect.x, rect.y, rect.width, rect.height, Math.min(4, rect.width / 8));
    context.fill();
  }
}

function paintBoxes(context: Context, scene: Scene): void {
  const { layout, projection, frame, ink } = scene;
  for (let depth = layout.levels.length - 1; depth >= 0; depth--) {
    const level = layout.levels[depth];
    if (!level || level.width * projection.scale < 6) continue;
    const font = Math.min(13, level.head * projection.scale * 0.78);
    context.font = `500 ${font}px ${ink.font}`;
    context.textBaseline = "middle";
    for (let index = 0; index < level.count; index++) {
      const box = boxAt(layout, depth, index);
      const rect = {
        x: (box.x - projection.left) * projection.scale,
        y: (box.y - projection.top) * projection.scale,
        width: box.width * projection.scale,
        height: box.height * projection.scale,
      };
      if (
        rect.x > frame.width ||
        rect.y > frame.height ||
        rect.x + rect.width < 0 ||
        rect.y + rect.height < 0
      )
        continue;
      context.fillStyle = depth % 2 === 0 ? ink.paper : ink.raised;
      context.strokeStyle = depth === 0 ? ink.line : ink.lineStrong;
      context.lineWidth = 1;
      paintBox(context, rect);
      if (font < LABEL_FROM_PX) continue;
      context.fillStyle = ink.soft;
      const name = level.count > 1 ? `${level.name} ${index}` : level.name;
      const [x, y] = [
        rect.x + level.pad * projection.scale,
        rect.y + (level.pad + level.head / 2) * projection.scale,
      ];
      context.textAlign = "left";
      if (context.measureText(name).width < rect.width - 4) context.fillText(name, Math.max(x, 4), y);
    }
  }
}

/** Thousands of small boxes have square corners: round ones cost ten times as much. */
function paintBox(context: Context, { x, y, width, height }: Rect): void {
  if (width < ROUND_BOX_FROM_PX) {
    context.fillRect(x, y, width, height);
    if (width > 12) context.strokeRect(x, y, width, height);
    return;
  }
  context.beginPath();
  context.roundRect(x, y, width, height, 6);
  context.fill();
  context.stroke();
}

/** Colours come again after eight: one stroke says the second time, two the third, and so on. */
function paintRounds(context: Context, scene: Scene): void {
  context.strokeStyle = scene.ink.paper;
  context.lineWidth = Math.max(1, scene.projection.scale / 16);
  context.beginPath();
  scene.indices.forEach((index, rank) => {
    const round = Math.floor(index / SERIES) % 4;
    const rect = round > 0 ? chipRect(scene, rank) : undefined;
    if (!rect) return;
    const { x, y, width } = rect;
    for (let stroke = 0; stroke < round; stroke++) {
      const along = (width * (stroke + 1)) / (round + 1);
      context.moveTo(x + along - width * 0.12, y + width * 0.94);
      context.lineTo(x + along + width * 0.12, y + width * 0.78);
    }
  });
  context.stroke();
}

function paintIndices(context: Context, scene: Scene): void {
  const { ink, projection } = scene;
  const withRank = projection.scale >= RANK_FROM_PX;
  context.fillStyle = ink.onSeries;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.font = `600 ${Math.min(22, projection.scale * 0.42)}px ${ink.font}`;
  scene.indices.forEach((index, rank) => {
    const rect = chipRect(scene, rank);
    if (rect)
      context.fillText(String(index), rect.x + rect.width / 2, rect.y + rect.width * (withRank ? 0.4 : 0.52));
  });
  if (!withRank) return;
  context.font = `400 ${Math.min(12, projection.scale * 0.22)}px ${ink.font}`;
  scene.indices.forEach((_, rank) => {
    const rect = chipRect(scene, rank);
    if (rect)
      context.fillText(`rank ${rank}`, rect.x + rect.width / 2, rect.y + rect.width * 0.72, rect.width - 4);
  });
}

/** Devices without a rank: outlines only. */
function paintIdle(context: Context, scene: Scene): void {
  context.strokeStyle = scene.ink.lineStrong;
  context.lineWidth = 1;
  for (let device = scene.indices.length; device < scene.layout.devices; device++) {
    const rect = chipRect(scene, device);
    if (rect) context.strokeRect(rect.x + 0.5, rect.y + 0.5, rect.width - 1, rect.height - 1);
  }
}
