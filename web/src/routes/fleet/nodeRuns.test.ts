import { expect, it } from "vitest";
import type { Fleet } from "../../api/queries/fleets";
import { poolRuns } from "./nodeRuns";

it("neighbours of one job are one stretch, free nodes are nobody's, and empty blocks are not drawn", () => {
  const fleet = {
    jobs: [{ nodes: ["a2", "a1", "b1"] }, { nodes: ["a4"] }, {}],
    pools: [
      {
        name: "p",
        blocks: [
          { name: "a", nodes: ["a1", "a2", "a3", "a4"] },
          { name: "b", nodes: ["b1"] },
          { name: "c", nodes: [] },
        ],
      },
    ],
  } as unknown as Fleet;
  expect(poolRuns(fleet)).toEqual([
    {
      name: "p",
      blocks: [
        {
          name: "a",
          size: 4,
          runs: [
            { job: 0, start: 0, nodes: ["a1", "a2"] },
            { job: undefined, start: 2, nodes: ["a3"] },
            { job: 1, start: 3, nodes: ["a4"] },
          ],
        },
        { name: "b", size: 1, runs: [{ job: 0, start: 0, nodes: ["b1"] }] },
      ],
    },
  ]);
});
