import { expect, test, vi } from "vitest";
import { latest } from "./latest";

interface Asked {
  question: string;
  answer: (text: string) => void;
  refuse: (error: Error) => void;
  signal: AbortSignal;
}

function desk() {
  const asked: Asked[] = [];
  const said: string[] = [];
  const fetch = (question: string, signal: AbortSignal) =>
    new Promise<string>((answer, refuse) => {
      asked.push({ question, answer, refuse, signal });
      signal.addEventListener("abort", () => refuse(new Error("aborted")));
    });
  const live = latest(fetch, {
    answered: (question, answer) => said.push(`${question}=${answer}`),
    refused: (question, error) => said.push(`${question}!${(error as Error).message}`),
    busy: (busy) => said.push(busy ? "busy" : "idle"),
  });
  return { asked, said, live };
}

const settled = () => vi.waitFor(() => Promise.resolve(), { timeout: 50 });

test("what comes while one is asked waits, and only the newest of it is asked", async () => {
  const { asked, said, live } = desk();
  for (const question of ["a", "b", "c"]) live.ask(question);
  expect(asked.map((each) => each.question)).toEqual(["a"]);
  asked[0]?.answer("1");
  await vi.waitFor(() => expect(asked.map((each) => each.question)).toEqual(["a", "c"]));
  asked[1]?.answer("3");
  await vi.waitFor(() => expect(said).toEqual(["busy", "a=1", "busy", "c=3", "idle"]));
});

test("a refusal is an answer too", async () => {
  const { asked, said, live } = desk();
  live.ask("a");
  asked[0]?.refuse(new Error("no"));
  await vi.waitFor(() => expect(said).toEqual(["busy", "a!no", "idle"]));
});

test("a late answer is given up when a newer question waits, never without one", async () => {
  vi.useFakeTimers();
  const { asked, said, live } = desk();
  live.ask("a");
  await vi.advanceTimersByTimeAsync(2_000);
  expect(asked[0]?.signal.aborted).toBe(false);
  live.ask("b");
  await vi.advanceTimersByTimeAsync(1);
  expect(asked[0]?.signal.aborted).toBe(true);
  expect(asked[1]?.question).toBe("b");
  expect(said).toEqual(["busy", "busy"]);
  vi.useRealTimers();
});

test("after the end nothing is said", async () => {
  const { asked, said, live } = desk();
  live.ask("a");
  live.stop();
  asked[0]?.answer("1");
  live.ask("b");
  await settled();
  expect(asked).toHaveLength(1);
  expect(said).toEqual(["busy"]);
});
