import { expect, test } from "vitest";
import { textToShow } from "./draftText";

test("what was typed comes back at the address where it was typed", () => {
  expect(textToShow({ text: "tp=4,", asked: "" }, "")).toBe("tp=4,");
  expect(textToShow({ text: "--tensor-model-parallel-size 4", asked: "tp=4" }, "tp=4")).toBe(
    "--tensor-model-parallel-size 4",
  );
});

test("a link shows what it asks", () => {
  expect(textToShow({ text: "tp=4", asked: "tp=4" }, "pp=8")).toBe("pp=8");
  expect(textToShow(undefined, "pp=8")).toBe("pp=8");
  expect(textToShow({ text: 3, asked: "" }, "")).toBe("");
});
