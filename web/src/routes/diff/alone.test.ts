import { expect, test } from "vitest";
import type { Schemas } from "../../api/client";
import { aloneOf, comparable } from "./alone";

const LEDGER = [
  { move: "cp 1 -> 2", outcome: "slower", step_time_s: 12, peak_memory_bytes: 60, reason: "", terms_s: [] },
  { move: "vpp 8 -> 4", outcome: "illegal", reason: "no", terms_s: [] },
] as unknown as readonly Schemas["Neighbour"][];

test("a change that is one move has its own seconds and bytes; others have none", () => {
  const found = aloneOf(
    {
      strategy: [
        { field: "cp", a: 1, b: 2 },
        { field: "vpp", a: 8, b: 4 },
        { field: "tp", a: 4, b: 2 },
      ],
      step_time_s: { term: "step_time_s", a: 10, b: 11, change: 1 },
      peak_memory_bytes: [{ term: "total", a: 70, b: 50, change: -20 }],
    },
    LEDGER,
  );
  expect([...found]).toEqual([["cp", { seconds: 2, bytes: -10 }]]);
});

test("pins and back-ends leave seconds comparable, another cluster does not", () => {
  const change = (field: string) => ({ field, a: null, b: 2 });
  const diff = (...fields: string[]) => ({ same_problem: false, problem: fields.map(change) });
  expect(comparable(diff("/constraints/pins/cp"))).toBe(true);
  expect(comparable(diff("/constraints/pins/cp", "/constraints/backends/0"))).toBe(true);
  expect(comparable(diff("/constraints/pins/cp", "/cluster/pools/0/num_nodes"))).toBe(false);
  expect(comparable({ same_problem: true, problem: [] })).toBe(true);
});
