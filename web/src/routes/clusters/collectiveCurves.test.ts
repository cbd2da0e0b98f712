import { expect, test } from "vitest";
import type { CollectiveFit } from "../../api/queries/hardware";
import {
  byOperation,
  curveId,
  curveSentence,
  drawnCurve,
  operationSentence,
  pointRows,
  pointSentence,
} from "./collectiveCurves";

const measured = (operation: string, group_size: number, num_nodes: number, most: number): CollectiveFit => ({
  operation,
  group_size,
  num_nodes,
  concurrent: false,
  environment: "",
  format: "nccl-tests",
  batch_ids: [],
  num_points: 4,
  num_sizes: 2,
  smallest_bytes: 1024,
  largest_bytes: 2 ** 30,
  latency_s: 1e-5,
  largest_bus_bandwidth_bytes_per_s: most,
  points: {
    sizes_bytes: [1024, 2 ** 30],
    times_s: [1e-5, 5e-3],
    bus_bandwidths_bytes_per_s: [1.8e8, most],
  },
  sigma: { exact: 0.02, between: 0.04, factor_80: 1.05 },
});

const NARROW = measured("all_reduce", 8, 1, 370e9);
const WIDE = measured("all_reduce", 16, 2, 180e9);

test("curves have an address of their own, also where siblings ran as well", () => {
  expect(curveId(WIDE)).toBe("all_reduce-16-2");
  expect(curveId({ ...WIDE, concurrent: true })).toBe("all_reduce-16-2-concurrent");
});

test("operations are told apart, and the fastest group is named", () => {
  const found = byOperation([measured("all_gather", 8, 1, 1e11), WIDE, NARROW]);
  expect([...found.keys()]).toEqual(["all_gather", "all_reduce"]);
  expect(operationSentence("all_reduce", found.get("all_reduce") ?? [])).toBe(
    "2 curves of all_reduce; the most bus bandwidth is 370\u00a0GB/s, of 8 in a node.",
  );
});

test("a curve is drawn from the API's own numbers", () => {
  expect(drawnCurve(NARROW)).toEqual({
    id: "all_reduce-8-1",
    points: [
      { bytes: 1024, bandwidth_bytes_per_s: 1.8e8 },
      { bytes: 2 ** 30, bandwidth_bytes_per_s: 370e9 },
    ],
    factor: 1.05,
  });
  expect(pointRows([NARROW, WIDE])).toHaveLength(4);
});

test("a point and a curve are told in a line", () => {
  expect(pointSentence([NARROW, WIDE], { curve: 1, point: 1 })).toBe(
    "16 on 2 nodes, 1.00\u00a0GiB: 5.00\u00a0ms, 180\u00a0GB/s",
  );
  expect(curveSentence(WIDE)).toContain(
    "2 sizes, the smallest takes 10.0\u00a0\u00b5s, at most 180\u00a0GB/s",
  );
  expect(curveSentence(WIDE)).toContain("within 5.0\u00a0% in 8 of 10 cases");
});
