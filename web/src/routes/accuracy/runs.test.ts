import { describe, expect, it } from "vitest";
import {
  errorFigures,
  figuresOf,
  groupsOf,
  pairsOf,
  type Report,
  sortedGroups,
  type TimedRun,
  verdictsOf,
} from "./runs";

const run = (predicted: number, measured: number, more: Partial<TimedRun> = {}): TimedRun => ({
  id: `${predicted}/${measured}`,
  source: "somewhere",
  group: "here",
  device: "H100",
  fitted: false,
  predicted_step_time_s: predicted,
  interval: [0.9 * predicted, 1.1 * predicted],
  interval_level: 0.9,
  measured_step_time_s: measured,
  predicted_peak_memory_bytes: 1,
  measured_peak_memory_bytes: null,
  memory_meaning: "",
  fits: true,
  fits_judged: true,
  ran_out_of_memory: false,
  ranking_group: "",
  ...more,
});

describe("figures", () => {
  it("are those of the errors", () => {
    const found = errorFigures([0.1, -0.2, 0.3]);
    expect(found.median).toBeCloseTo(0.2);
    expect(found.p90).toBeCloseTo(0.28);
    expect(found.mean).toBeCloseTo(0.2);
  });
  it("let twice too slow and twice too fast cancel", () => {
    expect(figuresOf([run(2, 1), run(1, 2)]).bias).toBeCloseTo(0);
  });
  it("count what lies in its interval", () => {
    expect(figuresOf([run(1, 1.05), run(1, 2)]).inside).toBe(0.5);
  });
  it("do not exist of nothing", () => {
    expect(figuresOf([])).toMatchObject({ n: 0, median: undefined, bias: undefined, inside: undefined });
  });
});

it("verdicts leave out what was not judged", () => {
  const runs = [
    run(1, 1),
    run(1, 1, { fits: false }),
    run(1, 1, { fits: false, ran_out_of_memory: true }),
    run(1, 1, { fits_judged: false, ran_out_of_memory: true }),
  ];
  expect(verdictsOf(runs)).toEqual({ died: 1, diedForeseen: 1, ran: 2, ranRefused: 1 });
});

it("groups stand by size, or as they are sorted", () => {
  const runs = [run(1, 2, { device: "A" }), run(1, 1, { device: "B" }), run(1, 1.1, { device: "B" })];
  const groups = groupsOf(runs, (each) => each.device ?? "");
  expect(groups.map((each) => each.group)).toEqual(["B", "A"]);
  expect(sortedGroups(groups, "median", true).map((each) => each.group)).toEqual(["A", "B"]);
  expect(sortedGroups(groups, "group", false).map((each) => each.group)).toEqual(["A", "B"]);
});

it("a run is a mark of its source; only a report by source has publications", () => {
  const runs = [run(2, 1.5)];
  const marks = (by: string) =>
    pairsOf({ by } as Report, runs, (each) => [each.measured_step_time_s, each.predicted_step_time_s]);
  expect(marks("source")).toEqual([{ id: "2/1.5", measured: 1.5, predicted: 2, series: "here" }]);
  expect(marks("device")[0]?.series).toBe("somewhere");
});
