import { expect, test } from "vitest";
import type { ThroughputPoint } from "../../api/queries/throughput";
import { budgetOf, curvesOf, curvesSentence, QUANTITIES, rowsOf, tokensOf, verdict } from "./curves";

const point = (num_devices: number, said: Partial<ThroughputPoint>) =>
  ({ name: `${num_devices}`, num_devices, fits: true, ...said }) as ThroughputPoint;
const ROWS = [
  ...rowsOf("fast", [
    point(8, { fits: false, reason: "too large" }),
    point(16, { tokens_per_s: 1600, tokens_per_s_per_device: 100, proved: true }),
    point(64, { tokens_per_s: 5760, tokens_per_s_per_device: 90, gap: 0.02 }),
  ]),
  ...rowsOf("slow", [point(16, { fits: null, reason: "not decided" })]),
];
const [TOKENS] = QUANTITIES;
if (!TOKENS) throw new Error("no quantity");

test("each cluster is a curve; what does not fit or is undecided is marked", () => {
  const [fast, slow] = curvesOf(["fast", "slow"], ROWS, TOKENS);
  expect(fast?.points.map((each) => [each.x, each.y, each.mark, each.sure])).toEqual([
    [8, null, "does-not-fit", false],
    [16, 1600, undefined, true],
    [64, 5760, undefined, false],
  ]);
  expect(slow?.points[0]?.mark).toBe("undecided");
});

test("the sentence names the best, and what is kept of ideal scaling", () => {
  const said = curvesSentence(ROWS, TOKENS);
  expect(said).toContain("on 64 devices of fast");
  expect(said).toContain("fast keeps 90\u00a0% from 16 to 64");
  expect(curvesSentence([], TOKENS)).toBe("Nothing is known yet.");
});

test("verdicts", () => {
  expect(ROWS.map((row) => verdict(row.point))).toEqual([
    "Does not fit",
    "Proved best",
    "Within 2.0\u00a0% of the bound",
    "Undecided",
  ]);
});

test("a budget of tokens gives days and money, of what is known", () => {
  const priced = point(8, { tokens_per_s: 1e6, cost_per_million_tokens: 0.5 });
  expect(budgetOf(priced, 8.64e11)).toEqual({ days: 10, cost: 432_000 });
  expect(budgetOf(point(8, {}), 1e12)).toEqual({ days: undefined, cost: undefined });
  expect(["15e12", "", "-3", "many"].map(tokensOf)).toEqual([15e12, undefined, undefined, undefined]);
});
