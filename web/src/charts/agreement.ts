/** Where does a pair of predicted and measured stand?  Two logarithmic axes with one domain: equal is the diagonal. */

import { SHAPES, type Shape, scaleLog } from "./scales";
import type { Box } from "./steps";

export interface Pair {
  readonly id: string;
  readonly measured: number;
  readonly predicted: number;
  readonly series: string;
}

export interface SeriesLook {
  readonly name: string;
  readonly n: number;
  readonly colour: string;
  readonly shape: Shape;
}

export const MARGIN = { left: 76, right: 12, top: 10, bottom: 44 };
export const OTHER = "other";
export const AREA_PX2 = 36;

/** A colour and a shape for each of the largest series; the rest is one, "other". */
export function looksOf(names: Iterable<string>): SeriesLook[] {
  const sizes = new Map<string, number>();
  for (const name of names) sizes.set(name, (sizes.get(name) ?? 0) + 1);
  const ordered = [...sizes].sort(([a, n], [b, m]) => m - n || a.localeCompare(b));
  const own = ordered.length <= SHAPES.length ? ordered : ordered.slice(0, SHAPES.length - 1);
  const rest = ordered.slice(own.length).reduce((total, [, n]) => total + n, 0);
  const look = (name: string, n: number, place: number): SeriesLook => ({
    name,
    n,
    colour: `var(--series-${name === OTHER ? 8 : place + 1})`,
    shape: SHAPES[place % SHAPES.length] as Shape,
  });
  const looks = own.map(([name, n], place) => look(name, n, place));
  return rest > 0 ? [...looks, look(OTHER, rest, SHAPES.length - 1)] : looks;
}

export function agreementScales(pairs: readonly Pair[], { width, height }: Box) {
  let [low, high] = [Infinity, -Infinity];
  for (const { measured, predicted } of pairs) {
    low = Math.min(low, measured, predicted);
    high = Math.max(high, measured, predicted);
  }
  const domain = [low / 1.3, high * 1.3] as const;
  return {
    x: scaleLog(domain, [MARGIN.left, width - MARGIN.right]),
    y: scaleLog(domain, [height - MARGIN.bottom, MARGIN.top]),
  };
}

export type AgreementScales = ReturnType<typeof agreementScales>;

/** Between so much too fast and so much too slow: `share` = 0.25 is -25 % to +25 %. */
export function bandPath({ x, y }: AgreementScales, share: number): string {
  const [low, high] = x.domain();
  const line = (factor: number) => [low, high].map((at) => [x(at), y(at * factor)] as const);
  const corners = [...line(1 + share), ...line(1 - share).reverse()];
  return `M${corners.map(([a, b]) => `${a.toFixed(1)},${b.toFixed(1)}`).join("L")}Z`;
}

/** All marks of one look in one path: thousands of points stay a handful of elements. */
export function marksPath(pairs: readonly Pair[], shape: Shape, { x, y }: AgreementScales): string {
  const parts = shape(AREA_PX2).match(/[A-Za-z][^A-Za-z]*/g) ?? [];
  return pairs
    .map((pair) => parts.map((part) => moved(part, x(pair.measured), y(pair.predicted))).join(""))
    .join("");
}

/** M, L and A end at a place; Z has none. */
function moved(part: string, dx: number, dy: number): string {
  const [letter, numbers] = [part[0] ?? "", (part.slice(1).match(/-?[\d.]+/g) ?? []).map(Number)];
  const at = (value: number | undefined, by: number) => ((value ?? 0) + by).toFixed(1);
  const [first, second] = numbers;
  if (!"MLA".includes(letter)) return part;
  if (letter === "A") return `A${numbers.slice(0, 5).join(",")},${at(numbers[5], dx)},${at(numbers[6], dy)}`;
  return `${letter}${at(first, dx)},${at(second, dy)}`;
}

/** The nearest pair within reach. */
export function nearest(
  pairs: readonly Pair[],
  { x, y }: AgreementScales,
  at: readonly [number, number],
  reach_px = 24,
): Pair | undefined {
  let found: Pair | undefined;
  let least = reach_px ** 2;
  for (const pair of pairs) {
    const size = (x(pair.measured) - at[0]) ** 2 + (y(pair.predicted) - at[1]) ** 2;
    if (size <= least) [found, least] = [pair, size];
  }
  return found;
}
