import { expect, test } from "vitest";
import type { MeshView } from "../../../api/queries/mesh";
import { boxesOf, chosenAxis, coordinatesOf, rangesOf, trafficOf } from "./axes";

const axis = (name: string, size: number) => ({ axis: name, group_size: size });
const view = {
  devices_per_node: 4,
  levels: [
    { name: "scale_up", devices_per_group: 72 },
    { name: "leaf", devices_per_group: 144 },
  ],
  axes: [axis("tp", 1), axis("dp_cp", 8), axis("pp", 2)],
  dense: [
    { name: "tp", size: 1, stride: 1 },
    { name: "dp_shard", size: 8, stride: 1 },
    { name: "pp", size: 2, stride: 8 },
  ],
  expert: [
    { name: "ep", size: 4, stride: 1 },
    { name: "pp", size: 2, stride: 8 },
  ],
  traffic: [{ axis: "dp_shard" }, { axis: "edp_shard" }, { axis: "pp" }],
} as unknown as MeshView;

test("without a wish, the first axis with groups", () => {
  expect(chosenAxis(view, "")?.axis).toBe("dp_cp");
  expect(chosenAxis(view, "pp")?.axis).toBe("pp");
  expect(chosenAxis(view, "nonsense")?.axis).toBe("dp_cp");
});

test("data parallel groups send as their factors", () => {
  expect(trafficOf(view, "dp_cp").map((each) => each.axis)).toEqual(["dp_shard"]);
  expect(trafficOf(view, "edp").map((each) => each.axis)).toEqual(["edp_shard"]);
  expect(trafficOf(view, "tp")).toEqual([]);
});

test("a domain may span nodes", () => {
  expect(boxesOf(view)).toEqual([
    { name: "node", size: 4 },
    { name: "domain", size: 72 },
    { name: "leaf", size: 144 },
  ]);
});

test("coordinates leave out what has one value, and say pp once", () => {
  expect(coordinatesOf(view, 13)).toEqual([
    { name: "dp_shard", at: 5, of: 8 },
    { name: "pp", at: 1, of: 2 },
    { name: "ep", at: 1, of: 4 },
  ]);
});

test("ranks are written as ranges", () => {
  expect(rangesOf([0, 1, 2, 3, 8, 9, 20])).toBe("0–3, 8–9, 20");
  expect(rangesOf([0, 2, 4, 6], 2)).toBe("0, 2, …");
});
