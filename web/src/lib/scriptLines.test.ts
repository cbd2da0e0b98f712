import { expect, test } from "vitest";
import { scriptLines } from "./scriptLines";

const EMPTY = {
  arguments: { used: ["--num-layers 4"], no_influence: [], not_modelled: [], unknown: [] },
  ...{ derived: [], undecided: [], taken_as_unset: [], left_out: [], set_by_script: [], held_to: [] },
  launches: 1,
};

test("of a script that says everything, the counts alone are told", () => {
  expect(scriptLines(EMPTY)).toEqual([
    { title: "arguments", text: "1 used, 0 without influence on the plan, 0 not modelled" },
  ]);
});

test("every list of the answer is told", () => {
  const lines = scriptLines({
    arguments: { used: [], no_influence: ["--lr 1"], not_modelled: ["--use-nccl-ub"], unknown: ["--mine"] },
    derived: ["etp is tp"],
    undecided: [{ line: 5, what: "source conf.sh", say: "the file" }],
    taken_as_unset: [
      { name: "TP", line: 2 },
      { name: "$1", line: 3 },
    ],
    ...{ left_out: ["--sometimes"], set_by_script: ["NODES"], held_to: ["global_batch_size 8"] },
    launches: 2,
  });
  expect(lines.slice(1).map(({ title, text }) => `${title}: ${text}`)).toEqual([
    "derived: etp is tp",
    "not modelled: --use-nccl-ub",
    "not known: --mine",
    "undecided: line 5: source conf.sh; the file",
    "left out: --sometimes",
    "taken as not set: TP (line 2), $1 (line 3)",
    "set by the script: NODES",
    "held to: global_batch_size 8",
    "runs: 2 are started, the first is read",
  ]);
});
