import { expect, test } from "vitest";
import { at, columnsOf, firstAbove, rankOf } from "./columns";
import { gpipe, gpipeView } from "./gpipe.testdata";
import { placesOfMicrobatch } from "./waiting";

test("running sums hold the time of every kind", () => {
  const step = gpipe(3, 5);
  const total = step.before_ns.reduce((sum, kind) => sum + at(kind, step.kind.length), 0);
  expect(total).toBe(step.busy_ns.reduce((sum, each) => sum + each, 0));
});

test("every action belongs to one micro-batch and one rank", () => {
  const step = gpipe(3, 5);
  const found = Array.from({ length: step.num_microbatches }, (_, each) => [
    ...placesOfMicrobatch(step, each),
  ]);
  expect(found.flat().sort((a, b) => a - b)).toEqual([...step.kind.keys()]);
  found.forEach((places, microbatch) => {
    expect(places.map((place) => at(step.microbatch, place))).toEqual(places.map(() => microbatch));
  });
  expect([0, 9, 10, 29].map((place) => rankOf(step, place))).toEqual([0, 0, 1, 2]);
  expect([...placesOfMicrobatch(step, 5)]).toEqual([]);
});

test("transfers are ordered by sender and time, however they come", () => {
  const view = gpipeView(3, 4);
  const turned = Object.fromEntries(
    Object.entries(view.transfers).map(([name, column]) => [name, [...column].reverse()]),
  ) as typeof view.transfers;
  const { transfers } = columnsOf({ ...view, transfers: turned });
  expect(transfers).toEqual(columnsOf(view).transfers);
  for (let rank = 0; rank < 3; rank++) {
    const own = transfers.start_ns.subarray(at(transfers.offsets, rank), at(transfers.offsets, rank + 1));
    expect([...own]).toEqual([...own].sort((a, b) => a - b));
  }
});

test("the first above a limit, also where there is none", () => {
  expect([0, 1, 2, 9].map((limit) => firstAbove([1, 2, 2, 3], limit, 0, 4))).toEqual([0, 1, 3, 4]);
});
