import { describe, expect, test } from "vitest";
import { typedNumber } from "../../lib/typed";
import { readNewPlanSearch } from "../new-plan.search";
import { questionOf, typedPins } from "./question";

const draft = readNewPlanSearch.full({});

describe("typedNumber", () => {
  test.each([
    ["64", 64],
    [" 1,024 ", 1024],
    ["", undefined],
    ["6k", "6k"],
    ["-1", -1],
  ])("%s", (text, expected) => expect(typedNumber(text)).toBe(expected));
});

test("pins are read as on the command line", () => {
  expect(typedPins("tp=8, --recompute=full sp=true")).toEqual({ tp: 8, recompute: "full", sp: true });
});

test("what is left empty is left to the server", () => {
  const sent = JSON.parse(JSON.stringify(questionOf({ ...draft, devices: "" }, {})));
  expect(sent).not.toHaveProperty("devices");
  expect(sent.objective).toEqual({ minimize: "step_time" });
  expect(sent.constraints).toEqual({ backends: ["any"], pins: {}, forbids: [] });
});

test("a dropped document wins over the name, and is named while it is missing", () => {
  const dropped = { ...draft, modelFile: "config.json" };
  const content = { model_type: "llama" };
  expect(questionOf(dropped, { model: { name: "config.json", content } }).model).toEqual(content);
  expect(questionOf(dropped, {}).model).toBe("config.json");
});

test("the margin is typed in percent and sent as a fraction", () => {
  expect(questionOf({ ...draft, margin: "5" }, {}).constraints?.memory_margin_fraction).toBe(0.05);
});

test("so is the chance to fit", () => {
  expect(questionOf({ ...draft, fits: "99" }, {}).constraints?.fits).toBe(0.99);
});
