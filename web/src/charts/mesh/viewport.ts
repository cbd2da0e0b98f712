/** Which part of the map is seen?  A zoom over "all of it fits", and the point in the middle. */

import type { MapLayout } from "./layout";

export interface View {
  /** 1 = the whole map fits. */
  readonly zoom: number;
  /** Middle of the window, as fractions of the map's width and height: the same in windows of all sizes. */
  readonly x: number;
  readonly y: number;
}

export interface Frame {
  readonly width: number;
  readonly height: number;
}

/** px = (unit - origin) * scale. */
export interface Projection {
  readonly scale: number;
  readonly left: number;
  readonly top: number;
}

export const WHOLE: View = { zoom: 1, x: 0.5, y: 0.5 };
/** No chip grows larger than this. */
const LARGEST_CHIP_PX = 88;
const EDGE_PX = 4;

const between = (low: number, value: number, high: number): number => Math.min(high, Math.max(low, value));

function fitScale(layout: MapLayout, frame: Frame): number {
  const [width, height] = [frame.width - 2 * EDGE_PX, frame.height - 2 * EDGE_PX];
  return Math.min(width / layout.width, height / layout.height, LARGEST_CHIP_PX);
}

export function largestZoom(layout: MapLayout, frame: Frame): number {
  return Math.max(1, LARGEST_CHIP_PX / fitScale(layout, frame));
}

/** The view moved as little as needed so that no more empty paper is seen than must be. */
export function clampView(view: View, layout: MapLayout, frame: Frame): View {
  const zoom = between(1, view.zoom, largestZoom(layout, frame));
  const scale = fitScale(layout, frame) * zoom;
  const half = (frameLength: number, mapLength: number) =>
    Math.min(0.5, (frameLength / 2 - EDGE_PX) / (mapLength * scale));
  const [halfX, halfY] = [half(frame.width, layout.width), half(frame.height, layout.height)];
  return { zoom, x: between(halfX, view.x, 1 - halfX), y: between(halfY, view.y, 1 - halfY) };
}

export function projectionOf(view: View, layout: MapLayout, frame: Frame): Projection {
  const { zoom, x, y } = clampView(view, layout, frame);
  const scale = fitScale(layout, frame) * zoom;
  return {
    scale,
    left: x * layout.width - frame.width / 2 / scale,
    top: y * layout.height - frame.height / 2 / scale,
  };
}

/** Zoom by a factor; the point of the map at `at` (px) stays where it is. */
export function zoomAt(
  view: View,
  factor: number,
  at: { x: number; y: number },
  layout: MapLayout,
  frame: Frame,
): View {
  const before = projectionOf(view, layout, frame);
  const zoom = between(1, clampView(view, layout, frame).zoom * factor, largestZoom(layout, frame));
  const scale = fitScale(layout, frame) * zoom;
  const [pointX, pointY] = [before.left + at.x / before.scale, before.top + at.y / before.scale];
  const x = (pointX - (at.x - frame.width / 2) / scale) / layout.width;
  const y = (pointY - (at.y - frame.height / 2) / scale) / layout.height;
  return clampView({ zoom, x, y }, layout, frame);
}

/** Move by px. */
export function panBy(view: View, dx: number, dy: number, layout: MapLayout, frame: Frame): View {
  const { scale } = projectionOf(view, layout, frame);
  const { zoom, x, y } = clampView(view, layout, frame);
  return clampView(
    { zoom, x: x - dx / scale / layout.width, y: y - dy / scale / layout.height },
    layout,
    frame,
  );
}

/** The view in which a chip is seen: unchanged if it is seen already. */
export function revealing(view: View, chip: { x: number; y: number }, layout: MapLayout, frame: Frame): View {
  const { scale, left, top } = projectionOf(view, layout, frame);
  const [x, y] = [(chip.x - left) * scale, (chip.y - top) * scale];
  const seen = x >= 0 && y >= 0 && x + scale <= frame.width && y + scale <= frame.height;
  if (seen) return view;
  return clampView(
    { zoom: view.zoom, x: (chip.x + 0.5) / layout.width, y: (chip.y + 0.5) / layout.height },
    layout,
    frame,
  );
}
