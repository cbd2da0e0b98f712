import { expect, test } from "vitest";
import type { ThroughputPoint } from "../../api/queries/throughput";
import { curvesOf, curvesSentence, QUANTITIES, rowsOf, verdict } from "./curves";

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
