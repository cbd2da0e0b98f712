/** How do quantities of several series grow with devices?  Logarithmic devices; logarithmic or linear quantity. */

import { linePath, scaleLinear, scaleLog } from "./scales";

export interface CurvePoint {
  readonly id: string;
  readonly x: number;
  /** null = there is no value: it stands on the floor of the picture, with its mark. */
  readonly y: number | null;
  /** Hollow: another plan could be better. */
  readonly sure: boolean;
  readonly mark?: "does-not-fit" | "undecided";
}

export interface Curve {
  readonly name: string;
  readonly points: readonly CurvePoint[];
}

export interface CurvesBox {
  readonly width: number;
  readonly height: number;
}

export const CURVES_MARGIN = { left: 62, right: 14, top: 12, bottom: 44 };
/** Height of the strip under the curves where points without a value stand. */
export const STRIP_PX = 16;

const ends = (values: readonly number[]): readonly [number, number] =>
  values.length > 0 ? [Math.min(...values), Math.max(...values)] : [1, 2];

export function curveScales(curves: readonly Curve[], logarithmic: boolean, { width, height }: CurvesBox) {
  const points = curves.flatMap((each) => each.points);
  const known = points.flatMap((each) => (each.y === null ? [] : [each.y]));
  const [low, high] = ends(points.map((each) => each.x));
  const [least, most] = ends(known);
  const floor = height - CURVES_MARGIN.bottom - STRIP_PX;
  const range = [floor, CURVES_MARGIN.top] as const;
  const room = (most - least) * 0.1 || most * 0.1 || 1;
  const x = scaleLog([low / 1.12, high * 1.12], [CURVES_MARGIN.left, width - CURVES_MARGIN.right]);
  const y = logarithmic
    ? scaleLog([least / 1.25, most * 1.25], range)
    : scaleLinear([Math.max(0, least - room), most + room], range).nice(4);
  return { x, y, floor };
}

export type CurveScales = ReturnType<typeof curveScales>;

/** The line through the points that have a value. */
export function curvePath(points: readonly CurvePoint[], { x, y }: CurveScales): string {
  return linePath(points.flatMap((each) => (each.y === null ? [] : [[x(each.x), y(each.y)] as const])));
}

/** As if each device added as much as those of the smallest count: from the first known point to the last. */
export function idealPath(points: readonly CurvePoint[], { x, y }: CurveScales): string {
  const known = points.filter((each) => each.y !== null);
  const [first, last] = [known[0], known.at(-1)];
  if (!first?.y || !last || first === last) return "";
  return `M${x(first.x)} ${y(first.y)}L${x(last.x)} ${y((first.y * last.x) / first.x)}`;
}
