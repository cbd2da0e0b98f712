import { describe, expect, it } from "vitest";
import { hostLines } from "../../api/queries/fleets";
import { again, hostLists } from "./file";

const AFTER = { former: "ab", lost: "n[1-2,4], n7", fewest: true };

describe("a fleet file that is shared again", () => {
  it("gets the earlier answer and the lost nodes, in place of those it had", () => {
    const once = again("jobs: []\npools: []\nmoves: when_it_pays\n", AFTER);
    expect(once).toBe('jobs: []\npools: []\nformer: "ab"\nlost_nodes: ["n[1-2,4]","n7"]\nmoves: "fewest"\n');
    expect(again(once, { ...AFTER, former: "cd", lost: "" })).toBe(
      'jobs: []\npools: []\nformer: "cd"\nlost_nodes: []\nmoves: "fewest"\n',
    );
  });

  it("may be JSON", () => {
    expect(JSON.parse(again('{"jobs": [1]}', AFTER))).toEqual({
      jobs: [1],
      former: "ab",
      lost_nodes: ["n[1-2,4]", "n7"],
      moves: "fewest",
    });
  });
});

it("host lists are read one by one, and names are sent in short lines", () => {
  expect(hostLists(" a1  b[01-03,7],c ")).toEqual(["a1", "b[01-03,7]", "c"]);
  expect(hostLines(["a1", "a2", "a3"], 5)).toEqual(["a1,a2", "a3"]);
  expect(hostLines([])).toEqual([]);
});
