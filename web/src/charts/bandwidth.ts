/** How fast is a message of each size?  Logarithmic bytes, bandwidth from zero; where points lie, and which is next. */

import { linePath, scaleLinear, scaleLog } from "./scales";

export interface BandwidthPoint {
  readonly bytes: number;
  readonly bandwidth_bytes_per_s: number;
}

export interface BandwidthCurve {
  readonly id: string;
  /** Smallest message first. */
  readonly points: readonly BandwidthPoint[];
  /** The interval between points: the bandwidth divided and multiplied by this. */
  readonly factor: number;
}

/** A point of a curve, by their places. */
export interface PointPlace {
  readonly curve: number;
  readonly point: number;
}

export const BANDWIDTH_MARGIN = { left: 74, right: 14, top: 14, bottom: 42 };

export function bandwidthScales(curves: readonly BandwidthCurve[], width: number, height: number) {
  const points = curves.flatMap((each) => each.points);
  const sizes = points.map((each) => each.bytes);
  const low = sizes.length > 0 ? Math.max(1, Math.min(...sizes)) : 1;
  const high = Math.max(low * 2, ...sizes);
  const most = points.length > 0 ? Math.max(...points.map((each) => each.bandwidth_bytes_per_s)) : 1;
  return {
    x: scaleLog([low / 1.3, high * 1.3], [BANDWIDTH_MARGIN.left, width - BANDWIDTH_MARGIN.right]),
    y: scaleLinear([0, most * 1.1], [height - BANDWIDTH_MARGIN.bottom, BANDWIDTH_MARGIN.top]),
  };
}

export type BandwidthScales = ReturnType<typeof bandwidthScales>;

export function bandwidthPath(curve: BandwidthCurve, { x, y }: BandwidthScales): string {
  return linePath(curve.points.map((each) => [x(Math.max(1, each.bytes)), y(each.bandwidth_bytes_per_s)]));
}

/** The interval around a curve; the picture ends above where it would leave it. */
export function intervalPath(curve: BandwidthCurve, { x, y }: BandwidthScales): string {
  const [, top] = y.domain();
  const edge = (factor: number) =>
    curve.points.map(
      (each) => [x(Math.max(1, each.bytes)), y(Math.min(top, each.bandwidth_bytes_per_s * factor))] as const,
    );
  return `${linePath([...edge(curve.factor), ...edge(1 / curve.factor).reverse()])}Z`;
}

/** 1 KiB, 32 KiB, ... : powers of 2^2, 2^5 or 2^10, as many as there is room for. */
export function byteTicks([low = 1, high = 2]: readonly number[], room: number): readonly number[] {
  const [first, last] = [Math.ceil(Math.log2(low)), Math.floor(Math.log2(high))];
  const step = [2, 5, 10].find((each) => (last - first) / each <= room) ?? 20;
  const ticks: number[] = [];
  for (let octave = Math.ceil(first / step) * step; octave <= last; octave += step) ticks.push(2 ** octave);
  return ticks;
}

const STEPS: Readonly<Record<string, readonly [curve: number, point: number]>> = {
  ArrowRight: [0, 1],
  ArrowLeft: [0, -1],
  ArrowDown: [1, 0],
  ArrowUp: [-1, 0],
};

/** Where a key leads: along a curve, or to the point of the next curve whose size is nearest. */
export function walked(
  curves: readonly BandwidthCurve[],
  from: PointPlace | undefined,
  key: string,
): PointPlace | undefined {
  const last = (curve: number) => (curves[curve]?.points.length ?? 1) - 1;
  if (!from) return key in STEPS || key === "Home" ? { curve: 0, point: 0 } : undefined;
  if (key === "Home") return { ...from, point: 0 };
  if (key === "End") return { ...from, point: last(from.curve) };
  const step = STEPS[key];
  if (!step) return undefined;
  if (step[1]) return { ...from, point: Math.min(last(from.curve), Math.max(0, from.point + step[1])) };
  const curve = (from.curve + step[0] + curves.length) % curves.length;
  return { curve, point: nearestSize(curves[curve], curves[from.curve]?.points[from.point]?.bytes ?? 1) };
}

function nearestSize(curve: BandwidthCurve | undefined, bytes: number): number {
  const far = (each: BandwidthPoint) => Math.abs(Math.log(Math.max(1, each.bytes) / Math.max(1, bytes)));
  const distances = curve?.points.map(far) ?? [];
  return Math.max(0, distances.indexOf(Math.min(...distances)));
}
