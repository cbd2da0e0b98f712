import { expect, test } from "vitest";
import { proofOf } from "./proof";

type Given = Parameters<typeof proofOf>[0];
const plan = (said: object) =>
  ({ status: "optimal", gap: 0, lower_bound_s: 2, backend: "a", backends: [{}, {}], ...said }) as Given;

test("proved best says in which spaces", () => {
  expect(proofOf(plan({})).small).toBe(
    "no plan in the spaces of the back-ends that were asked is predicted to be faster",
  );
  expect(proofOf(plan({ backends: [] })).small).toContain("the space of the back-end that was asked");
  expect(proofOf(plan({ backend: "unrestricted", backends: [] })).small).toContain("the unrestricted space");
  expect(proofOf(plan({ upgraded_from: 1, backends: [] })).small).toContain("the release that made it");
});

test("a recommended plan says what is proved of the fastest", () => {
  const fastest = { is_recommended: false, status: "optimal", slower_by: 0.018, step_time_s: 2 };
  const said = proofOf(plan({ status: "feasible", gap: 0.018, fastest }));
  expect(said.value).toBe("Recommended");
  expect(said.small).toMatch(/^1\.8\u00a0% from the fastest plan of 2\.000\u00a0s, which is proved$/);
  const same = { ...fastest, is_recommended: true, slower_by: 0 };
  expect(proofOf(plan({ fastest: same })).value).toBe("Proved best");
  const cut = { ...fastest, status: "feasible" };
  expect(proofOf(plan({ status: "feasible", gap: 0.2, fastest: cut })).name).toBe("Gap to the bound");
});

test("a gap is said, also of what counts as proved", () => {
  expect(proofOf(plan({ gap: 0.01 })).small).toMatch(/faster by more than 1\.00\u00a0%$/);
  expect(proofOf(plan({ status: "feasible", gap: 0.25 }))).toEqual({
    name: "Gap to the bound",
    value: "25.00\u00a0%",
    small: "no plan is faster than 2.000\u00a0s",
  });
});

test("an estimate that is stored is not called proved or near a bound", () => {
  const said = proofOf(plan({ status: "feasible", gap: null, lower_bound_s: null }));
  expect(said).toEqual({
    name: "Proof",
    value: "Not searched",
    small: "the strategy was given and is estimated: no bound is known",
  });
});
