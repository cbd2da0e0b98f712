import { expect, test } from "vitest";
import { readCompareSearch } from "../compare.search";
import { countsOf, pricesOf, questionsOf, withPrice } from "./questions";

const search = (said: Record<string, unknown>) => readCompareSearch.full(readCompareSearch(said));

test("each cluster is a question with its own price", () => {
  const asked = questionsOf(
    search({ clusters: ["dgx-h100", "trn2"], prices: ["trn2=1.25"], counts: "16, 8" }),
  );
  expect(asked.map((each) => each.cluster)).toEqual(["dgx-h100", "trn2"]);
  expect(asked[0]?.body).toMatchObject({ device_counts: [8, 16], price_per_device_hour: undefined });
  expect(asked[1]?.body).toMatchObject({ price_per_device_hour: 1.25 });
});

test("without clusters two are compared", () => {
  expect(questionsOf(search({})).map((each) => each.cluster)).toEqual(["dgx-h100", "dgx-a100-80g"]);
});

test("what is no number is sent as it is, to be refused with its reason", () => {
  expect(countsOf("8,many")).toContain("many");
  expect(countsOf(" 64 8,8;")).toEqual([8, 64]);
});

test("a price is kept as typed, and goes when it is emptied", () => {
  const priced = search({ prices: ["dgx-h100=2."] });
  expect(pricesOf(priced)).toEqual({ "dgx-h100": "2." });
  expect(withPrice(priced, "trn2", "1")).toEqual(["dgx-h100=2.", "trn2=1"]);
  expect(withPrice(priced, "dgx-h100", "")).toEqual([]);
});
