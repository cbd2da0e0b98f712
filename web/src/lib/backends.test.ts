import { expect, test } from "vitest";
import { backendOfOldAddress, namesIn, offerOf, offersOf, textOf } from "./backends";

const OFFERS = offersOf([
  { name: "titan", title: "Titan", releases: ["0.3.0", "0.2.2"] },
  { name: "bare", title: "Bare", releases: ["1"] },
]);

test("nothing typed means any, and any is not written down", () => {
  expect(namesIn("")).toEqual(["any"]);
  expect(textOf(["any"])).toBe("");
  expect(namesIn("a, b==1 a")).toEqual(["a", "b==1"]);
  expect(textOf(["a", "b==1"])).toBe("a,b==1");
});

test("each release is offered, the first one under the plain name", () => {
  expect(OFFERS.map((each) => [each.value, each.words])).toEqual([
    ["titan", "Titan 0.3.0"],
    ["titan==0.2.2", "Titan 0.2.2"],
    ["bare", "Bare 1"],
  ]);
  expect(offerOf(OFFERS, "titan==0.3.0")?.value).toBe("titan");
  expect(offerOf(OFFERS, "titan==0.2.2")?.words).toBe("Titan 0.2.2");
  expect(offerOf(OFFERS, "titan==9")).toBeUndefined();
});

test("an old address names its back-end as target and version", () => {
  expect(backendOfOldAddress({ target: "titan", version: "0.2.2" })).toBe("titan==0.2.2");
  expect(backendOfOldAddress({ target: "titan" })).toBe("titan");
  expect(backendOfOldAddress({ version: "0.2.2" })).toBeUndefined();
});
