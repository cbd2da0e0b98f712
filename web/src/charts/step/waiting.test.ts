import { expect, test } from "vitest";
import { at, rankOf } from "./columns";
import { gpipe, HOP_NS } from "./gpipe.testdata";
import { sourceOf, usersOf, waitingOf } from "./waiting";

const RANKS = 3;
const MICROBATCHES = 4;
const step = gpipe(RANKS, MICROBATCHES);
const forward = (rank: number, microbatch: number) => rank * 2 * MICROBATCHES + microbatch;
const backward = (rank: number, microbatch: number) => forward(rank, microbatch) + MICROBATCHES;

test("the first forward of a rank waits for the rank before and its transfer", () => {
  const waiting = waitingOf(step, forward(1, 0));
  expect(waiting).toMatchObject({ previous: undefined, source: forward(0, 0), held_by: "source" });
  expect(waiting.idle_ns).toBe(at(step.start_ns, forward(1, 0)));
  const arrived = at(step.transfers.end_ns, waiting.transfer ?? -1);
  expect(arrived).toBe(at(step.end_ns, forward(0, 0)) + HOP_NS);
  expect(arrived).toBe(at(step.start_ns, forward(1, 0)));
});

test("an action that follows at once waited for its own rank", () => {
  expect(waitingOf(step, forward(2, 3))).toMatchObject({
    previous: forward(2, 2),
    held_by: "previous",
    idle_ns: 0,
  });
});

test("the very first waited for nothing", () => {
  expect(waitingOf(step, 0)).toEqual({
    previous: undefined,
    source: undefined,
    transfer: undefined,
    idle_ns: 0,
    held_by: undefined,
  });
});

test("a backward needs the gradient of the chunk after, at the end its own forward", () => {
  expect(sourceOf(step, backward(0, 2))).toBe(backward(1, 2));
  expect(sourceOf(step, backward(2, 2))).toBe(forward(2, 2));
  expect(waitingOf(step, backward(2, 2)).transfer).toBeUndefined();
});

test("whoever needs a result is among those it feeds", () => {
  for (const place of step.kind.keys()) {
    const source = sourceOf(step, place);
    if (source !== undefined) expect(usersOf(step, source)).toContain(place);
  }
});

test("split backwards: a weight gradient needs the input gradient of its own chunk", () => {
  const split = {
    ...step,
    kind: step.kind.map((kind, place) => (kind === 1 && place % 2 ? 3 : kind === 1 ? 2 : 0)),
  };
  const weight = backward(1, 1);
  const input = backward(1, 0);
  const microbatch = step.microbatch.slice();
  microbatch[weight] = at(microbatch, input);
  const together = { ...split, microbatch, ...regrouped(microbatch) };
  expect(sourceOf(together, weight)).toBe(input);
  expect(rankOf(together, weight)).toBe(1);
});

function regrouped(microbatch: Int32Array) {
  const places = [...microbatch.keys()].sort((a, b) => at(microbatch, a) - at(microbatch, b) || a - b);
  const offsets = Array.from(
    { length: MICROBATCHES + 1 },
    (_, each) => microbatch.filter((own) => own < each).length,
  );
  return { of_microbatch: Int32Array.from(places), microbatch_offsets: Int32Array.from(offsets) };
}
