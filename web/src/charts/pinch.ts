/** What have two fingers done between two moments?  How much farther apart, and how far their middle has moved. */

export interface Place {
  readonly x: number;
  readonly y: number;
}

export interface Pinch {
  /** Above 1: the fingers have parted, so come closer. */
  readonly factor: number;
  /** Middle of the fingers before, px of the surface: zoom there first, and move after, for which there is then room. */
  readonly from: Place;
  readonly dx: number;
  readonly dy: number;
}

type Pair = readonly [Place, Place];

/** Fingers on one spot have no distance that could be a part of another. */
const CLOSEST_PX = 8;

export function pinchBetween(before: Pair, now: Pair): Pinch {
  const [from, to] = [middle(before), middle(now)];
  return { factor: distance(now) / distance(before), from, dx: to.x - from.x, dy: to.y - from.y };
}

const middle = ([a, b]: Pair): Place => ({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 });

const distance = ([a, b]: Pair): number => Math.max(CLOSEST_PX, Math.hypot(a.x - b.x, a.y - b.y));
