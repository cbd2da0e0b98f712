import { expect, test } from "vitest";
import type { PlanAnswer } from "../api/queries/plans";
import { plainMove, reliefWord } from "./relief";

const plan = (pins: Record<string, string | boolean>) =>
  ({ problem: { constraints: { pins } } }) as unknown as PlanAnswer;

test("a plan relieves where it is needed, unless its question pins it", () => {
  expect(reliefWord(plan({}), "recompute", "full")).toBe("full-where-needed");
  expect(reliefWord(plan({}), "recompute", "none")).toBe("none");
  expect(reliefWord(plan({}), "activation_offload", true)).toBe("where-needed");
  expect(reliefWord(plan({}), "activation_offload", false)).toBe(false);
  expect(reliefWord(plan({ recompute: "full-first-4" }), "recompute", "full")).toBe("full-first-4");
});

test.each([
  ["recompute none -> full-where-needed", "recompute none -> full"],
  ["activation_offload false -> where-needed", "activation_offload false -> true"],
  ["tp 4 -> 8", "tp 4 -> 8"],
])("%s is %s in a comparison", (move, plain) => expect(plainMove(move)).toBe(plain));
