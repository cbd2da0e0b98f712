import { expect, test } from "vitest";
import type { FileOutcome } from "../../api/queries/uploads";
import { contentWords, isRefused, remarks } from "./outcomes";

const outcome: FileOutcome = {
  name: "a.txt",
  positions: [0],
  format: "nccl-tests",
  title: "nccl-tests",
  tool: "nccl-tests",
  tool_version: "",
  also_looks_like: [],
  status: "would store",
  counts: { collectives: 1, links: 12 },
  devices: ["mi300x"],
  topology: null,
  flags: [],
  bad_rows: [],
  num_bad_rows: 0,
  skipped: {},
  redactions: {},
  findings: [],
};

test("what is in a file", () => {
  expect(contentWords(outcome)).toBe("1 collective, 12 links");
  expect(contentWords({ ...outcome, counts: {}, topology: "96 nodes" })).toBe("96 nodes");
  expect(contentWords({ ...outcome, counts: {} })).toBe("");
});

test("what to mind, each once", () => {
  const bad = { where: "line 7", what: "nan", hint: "" };
  const told = {
    ...outcome,
    devices: [""],
    flags: [{ code: "rank-mismatch", what: "8 ranks", line: 4 }],
    skipped: { warmup: 1200 },
    redactions: { host: 3 },
    bad_rows: [bad],
    num_bad_rows: 2,
  };
  expect(remarks(told)).toEqual([
    "line 4: 8 ranks",
    "1,200 left out: warmup",
    "bad: line 7: nan",
    "1 more bad row",
    "removed from texts: 3 host",
    expect.stringMatching(/device is not known/),
  ]);
  const refused = { ...told, findings: [{ pointer: "/files/0", detail: "line 7: nan" }] };
  expect(remarks(refused)).not.toContain("bad: line 7: nan");
});

test("which files are not stored", () => {
  expect(isRefused(outcome)).toBe(false);
  expect(isRefused({ ...outcome, status: "not recognised" })).toBe(true);
  expect(isRefused({ ...outcome, status: "refused" })).toBe(true);
});
