import { expect, test } from "vitest";
import type { Goodput } from "../../../api/queries/goodput";
import { readGoodputSearch } from "../goodput.search";
import { goodputQuestion } from "./question";
import { timeParts } from "./timeParts";

const typed = (part: object) => readGoodputSearch.full({ ...readGoodputSearch.full({}), ...part });

test("nothing is asked before the storage is known", () => {
  expect(goodputQuestion(typed({ repair: "48" }))).toBeUndefined();
});

test("what was left empty is not sent, and units are those of the API", () => {
  expect(goodputQuestion(typed({ storage: "2,000", repair: "48", tokens: "15e12" }))).toEqual({
    storage_bandwidth_bytes_per_s: 2e12,
    repair_hours: 48,
    tokens: 15e12,
  });
});

test("what is no number is sent as it was typed, for the API to refuse", () => {
  expect(goodputQuestion(typed({ storage: "fast" }))?.storage_bandwidth_bytes_per_s).toBe("fast");
});

test("the parts of the time are all of it", () => {
  const lost = { checkpoints: 0.02, done_again: 0.03, restarts: 0.01, waiting: 0.04 };
  const parts = timeParts({ useful: 0.9, lost } as Goodput);
  expect(parts.map((each) => each.name)).toEqual([
    "useful",
    "checkpoints",
    "done_again",
    "restarts",
    "waiting",
  ]);
  expect(parts.reduce((sum, each) => sum + each.value, 0)).toBeCloseTo(1);
});
