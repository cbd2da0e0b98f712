import { expect, test } from "vitest";
import { bindingFor, type KeyBinding } from "./keys";

const binding = (keys: string, does: string): KeyBinding => ({ keys, does, group: "Test", run: () => {} });
const all = [binding("n", "new"), binding("g p", "plans"), binding("p", "pause"), binding("n", "next")];

test.each([
  ["p", "", "pause"],
  ["p", "g", "plans"],
  ["p", "x", "pause"],
  ["n", "", "next"],
  ["n", "g", "next"],
  ["g", "", undefined],
])("%s after '%s' means %s", (pressed, before, does) => {
  expect(bindingFor(pressed, before, all)?.does).toBe(does);
});
