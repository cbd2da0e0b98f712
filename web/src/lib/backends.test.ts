import { expect, test } from "vitest";
import { backendOfOldAddress, namesIn, offerOf, offersOf, ownOffer, textOf } from "./backends";

const KNOWN = [
  { name: "titan", title: "Titan", releases: ["0.3.0", "0.2.2"], predicts_only: ["0.2.2"] },
  { name: "bare", title: "Bare", releases: ["1"], predicts_only: ["1"] },
];
const OFFERS = offersOf(KNOWN);

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

test("a release that predicts only has no files, whatever the others of its back-end have", () => {
  expect(OFFERS.map((each) => each.writesFiles)).toEqual([true, false, false]);
  expect(ownOffer(KNOWN, { backend: "titan", release: "" })).toEqual({
    words: "Titan 0.3.0",
    writesFiles: true,
  });
  expect(ownOffer(KNOWN, { backend: "titan", release: "0.2.2" }).writesFiles).toBe(false);
  expect(ownOffer([], { backend: "unrestricted", release: "" }).writesFiles).toBe(false);
  expect(ownOffer([], { backend: "new", release: "9" })).toEqual({ words: "new 9", writesFiles: true });
});

test("an old address names its back-end as target and version", () => {
  expect(backendOfOldAddress({ target: "titan", version: "0.2.2" })).toBe("titan==0.2.2");
  expect(backendOfOldAddress({ target: "titan" })).toBe("titan");
  expect(backendOfOldAddress({ version: "0.2.2" })).toBeUndefined();
});
