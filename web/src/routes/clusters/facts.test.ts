import { expect, test } from "vitest";
import { factsOf, typedFacts } from "./facts";

test("facts are read as on the command line", () => {
  expect(typedFacts("operation=all_gather, group-size=16")).toEqual({
    facts: { operation: "all_gather", group_size: "16" },
    findings: [],
  });
  expect(typedFacts("  ")).toEqual({ facts: {}, findings: [] });
});

test.each([
  ["16", /16 is not NAME=VALUE/],
  ["=16", /not NAME=VALUE/],
  ["group_size=", /not NAME=VALUE/],
  ["dtype=bf16 dtype=fp8", /given twice/],
])("%s is said to be no fact", (text, what) => expect(typedFacts(text).findings[0]?.detail).toMatch(what));

test("the device has a field of its own, and is said once", () => {
  expect(factsOf({ facts: "dtype=bf16", measured: "mi300x" }).facts).toEqual({
    dtype: "bf16",
    device: "mi300x",
  });
  expect(factsOf({ facts: "device=a100", measured: "mi300x" }).findings).toHaveLength(1);
  expect(factsOf({ facts: "device=mi300x", measured: "mi300x" }).findings).toEqual([]);
});
