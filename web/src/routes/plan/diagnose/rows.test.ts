import { expect, test } from "vitest";
import { isTraced, legendPieces, rankPieces, termPieces } from "./rows";

const term = (name: string, predicted_s: number | null, measured_s: number | null) => ({
  term: name,
  words: name,
  predicted_s,
  measured_s,
});

test("both bars have the same parts in the same order, also where one knows none", () => {
  const terms = [term("compute", 2, 3), term("idle", null, 1), term("tp", 0, 0)];
  expect(termPieces(terms, "predicted_s").map((each) => each.value)).toEqual([2, 0, 0]);
  expect(termPieces(terms, "measured_s").map((each) => each.value)).toEqual([3, 1, 0]);
  expect(legendPieces(terms).map((each) => each.look.label)).toEqual([
    "Compute",
    "Gaps: waiting for the host",
  ]);
});

test("the parts of a rank add up to its step", () => {
  const rank = { rank: 0, stage: 0, step_s: 5, own_s: 3, communication_s: 2, waiting_s: 1.5, idle_s: 0 };
  expect(rankPieces(rank).map((each) => each.value)).toEqual([3, 0.5, 1.5]);
  expect(rankPieces({ ...rank, waiting_s: null }).map((each) => each.value)).toEqual([3, 2, 0]);
});

test("a log alone measures no parts", () => {
  expect(isTraced({ terms: [term("compute", 2, null)] } as never)).toBe(false);
  expect(isTraced({ terms: [term("compute", 2, 0)] } as never)).toBe(true);
});
