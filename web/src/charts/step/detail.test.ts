import { expect, test } from "vitest";
import { at, type StepColumns } from "./columns";
import { actionAt, actionNear, isCrowded, sharesOf, sharesOfAll, stripsOf, visibleOf } from "./detail";
import { FORWARD_NS, forwardStart_ns, gpipe } from "./gpipe.testdata";
import { type TimeWindow, zoomed } from "./window";

const WIDTH = 1600;

/** Without running sums: the overlap of every action with every strip. */
function slowShares(
  step: StepColumns,
  rank: number,
  from_ns: number,
  strip_ns: number,
  count: number,
): number[] {
  return Array.from({ length: count * step.kinds.length }, (_, index) => {
    const [strip, kind] = [Math.floor(index / step.kinds.length), index % step.kinds.length];
    const [from, to] = [from_ns + strip * strip_ns, from_ns + (strip + 1) * strip_ns];
    let sum = 0;
    for (let place = at(step.offsets, rank); place < at(step.offsets, rank + 1); place++) {
      if (at(step.kind, place) !== kind) continue;
      sum += Math.max(0, Math.min(to, at(step.end_ns, place)) - Math.max(from, at(step.start_ns, place)));
    }
    return sum / strip_ns;
  });
}

test.each([
  [0, 0, 7_777, 40],
  [1, 12_345, 1_000, 60],
  [2, 55_001, 43_210, 9],
])(
  "the shares of rank %i from %i ns, strips of %i ns, are the overlaps",
  (rank, from_ns, strip_ns, count) => {
    const step = gpipe(3, 6);
    const shares = [...sharesOf(step, rank, { from_ns, strip_ns, count })];
    slowShares(step, rank, from_ns, strip_ns, count).forEach((share, index) => {
      expect(shares[index]).toBeCloseTo(share, 9);
    });
  },
);

test("all ranks together are busy for as long as they are", () => {
  const step = gpipe(4, 10);
  const strips = { from_ns: 0, strip_ns: step.makespan_ns / 37, count: 37 };
  const busy = sharesOfAll(step, strips).reduce((sum, each) => sum + each, 0) * strips.strip_ns;
  expect(busy).toBeCloseTo(at(step.busy_ns, 0), 3);
});

test("50,000 actions never cost more than the width, at any zoom", () => {
  const step = gpipe(8, 3125);
  expect(step.kind.length).toBe(50_000);
  let window: TimeWindow = { from_ns: 0, to_ns: step.makespan_ns };
  const crowded = new Set<boolean>();
  for (let closer = 0; closer < 60; closer++) {
    for (let rank = 0; rank < step.num_ranks; rank++) {
      const visible = visibleOf(step, rank, window);
      crowded.add(isCrowded(visible, WIDTH));
      const marks = isCrowded(visible, WIDTH)
        ? stripsOf(visible, window, WIDTH).count
        : visible.end - visible.first;
      expect(marks).toBeLessThanOrEqual(WIDTH);
    }
    window = zoomed(window, 0.8, step.makespan_ns * 0.4, step.makespan_ns);
  }
  expect(crowded.size).toBe(2);
});

test("strips stand still under a window that is panned", () => {
  const step = gpipe(8, 3125);
  const strips = [0, 1_000_001, 2_500_000].map((by) => {
    const window = { from_ns: 5_000_000 + by, to_ns: 25_000_000 + by };
    return stripsOf(visibleOf(step, 0, window), window, WIDTH);
  });
  expect(new Set(strips.map((each) => each.strip_ns)).size).toBe(1);
  for (const { from_ns, strip_ns } of strips) expect(from_ns / strip_ns).toBe(Math.round(from_ns / strip_ns));
});

test("what runs at a moment, and what begins next to it", () => {
  const step = gpipe(2, 3);
  expect(actionAt(step, 1, forwardStart_ns(1, 2) + 1)).toBe(at(step.offsets, 1) + 2);
  expect(actionAt(step, 1, forwardStart_ns(1, 0) - 1)).toBeUndefined();
  expect(actionAt(step, 0, step.makespan_ns + 1)).toBeUndefined();
  expect(actionNear(step, 0, FORWARD_NS * 0.9)).toBe(1);
  expect(actionNear(step, 0, FORWARD_NS * 0.1)).toBe(0);
  expect(actionNear(step, 1, step.makespan_ns * 2)).toBe(step.kind.length - 1);
});
