import { expect, test } from "vitest";
import { gpipe } from "../../../charts/step/gpipe.testdata";
import { waitingOf } from "../../../charts/step/waiting";
import { actionSentence, stepSentence } from "./describe";

const plain = (text: string) => text.replaceAll("\u00a0", " ");

test("the sentence says how long, how idle, and where", () => {
  expect(plain(stepSentence(gpipe(2, 4)))).toBe(
    "The pipeline of one step takes 156.0 µs on 2 ranks. They are idle for 23.1 % of all device time, most on rank 0: 36.00 µs (23.1 %). 1.000 µs follow for the optimizer and the rest.",
  );
});

test("one rank is no pipeline", () => {
  expect(stepSentence(gpipe(1, 4))).toContain("there is no pipeline and no bubble");
});

test("an action says when it ran and what held it", () => {
  const step = gpipe(2, 4);
  expect(plain(actionSentence(step, 8, waitingOf(step, 8)))).toBe(
    "Forward of micro-batch 0, chunk 1, on rank 1, from 0.013 ms to 0.023 ms. The rank was idle for 0.013 ms, until the result of forward of micro-batch 0, chunk 0 on rank 0 came, sent until 0.013 ms.",
  );
  expect(plain(actionSentence(step, 9, waitingOf(step, 9)))).toContain(
    "as soon as the rank had ended forward of",
  );
  expect(actionSentence(step, 0, waitingOf(step, 0))).toContain("It waited for nothing.");
});
