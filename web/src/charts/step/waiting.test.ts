import { expect, test } from "vitest";
import { at } from "./columns";
import { gpipe, HOP_NS } from "./gpipe.testdata";
import { sourceOf, usersOf, waitingOf } from "./waiting";

const RANKS = 3;
const MICROBATCHES = 4;
const step = gpipe(RANKS, MICROBATCHES);
const forward = (rank: number, microbatch: number) => rank * 2 * MICROBATCHES + microbatch;
const backward = (rank: number, microbatch: number) => forward(rank, microbatch) + MICROBATCHES;

test("the first forward of a rank waits for the rank before and its transfer", () => {
  const waiting = waitingOf(step, forward(1, 0));
  expect(waiting).toMatchObject({ previous: undefined, source: forward(0, 0), held_by: "result" });
  expect(waiting.idle_ns).toBe(at(step.start_ns, forward(1, 0)));
  const arrived = at(step.transfers.end_ns, waiting.transfer ?? -1);
  expect(arrived).toBe(at(step.end_ns, forward(0, 0)) + HOP_NS);
  expect(arrived).toBe(at(step.start_ns, forward(1, 0)));
});

test("an action that follows at once waited for its own rank", () => {
  expect(waitingOf(step, forward(2, 3))).toMatchObject({
    previous: forward(2, 2),
    held_by: "own rank",
    idle_ns: 0,
  });
});

test("the very first waited for nothing", () => {
  expect(waitingOf(step, 0)).toEqual({
    previous: undefined,
    source: undefined,
    transfer: undefined,
    idle_ns: 0,
    held_by: "nothing",
  });
});

test("a backward needs the gradient of the chunk after, at the end its own forward", () => {
  expect(sourceOf(step, backward(0, 2))).toBe(backward(1, 2));
  expect(sourceOf(step, backward(2, 2))).toBe(forward(2, 2));
  expect(waitingOf(step, backward(2, 2)).transfer).toBeUndefined();
});

test("who uses a result is found from its other end", () => {
  expect(usersOf(step, backward(0, 3))).toEqual([]);
  expect(usersOf(step, forward(0, 3))).toEqual([forward(1, 3)]);
});

test("whoever needs a result is among those it feeds", () => {
  for (const place of step.kind.keys()) {
    const source = sourceOf(step, place);
    if (source !== undefined) expect(usersOf(step, source)).toContain(place);
  }
});
