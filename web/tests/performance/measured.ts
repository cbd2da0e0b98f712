/**
 * How long does a gesture block the page, and how smoothly does it move?
 *
 * A task's processor time says what the page costs; its length also counts the time for which a busy machine made it wait.
 */

import type { Browser, Page } from "@playwright/test";

interface TraceEvent {
  name: string;
  pid: number;
  tid: number;
  /** Microseconds: length, and processor time. */
  dur?: number;
  tdur?: number;
  args?: { name?: string };
}

const CATEGORIES = ["toplevel", "disabled-by-default-devtools.timeline", "__metadata"];

export async function measured(
  what: string,
  browser: Browser,
  page: Page,
  gesture: () => Promise<void>,
): Promise<void> {
  await browser.startTracing(page, { categories: CATEGORIES });
  const begun = await page.evaluate(countFrames).catch(() => undefined);
  await gesture();
  const frames_ms = begun ? await page.evaluate(() => window.frames_ms) : [];
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString()) as {
    traceEvents: TraceEvent[];
  };
  const tasks = tasksOf(traceEvents);
  const most = (times: readonly number[]) => Math.max(0, ...times);
  const fps = frames_ms.length > 0 ? (1000 * frames_ms.length) / frames_ms.reduce((a, b) => a + b, 0) : 0;
  const motion = fps ? `${fps.toFixed(1)} frames/s, slowest ${most(frames_ms).toFixed(0)} ms; ` : "";
  // biome-ignore lint/suspicious/noConsole: a measurement is its print
  console.log(
    `${what}: ${motion}longest task ${most(tasks.map((each) => each.cpu_ms)).toFixed(0)} ms of processor time, ` +
      `${most(tasks.map((each) => each.length_ms)).toFixed(0)} ms long; ${tasks.length} tasks`,
  );
}

declare global {
  interface Window {
    frames_ms: number[];
  }
}

function countFrames(): boolean {
  if (location.protocol === "about:") return false;
  window.frames_ms = [];
  let before = 0;
  const kept = window.frames_ms;
  const tick = (now: number) => {
    if (kept !== window.frames_ms) return;
    if (before) kept.push(now - before);
    before = now;
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
  return true;
}

/** What the main threads of pages ran, task by task. */
function tasksOf(events: readonly TraceEvent[]): readonly { length_ms: number; cpu_ms: number }[] {
  const main = new Set(
    events
      .filter((each) => each.name === "thread_name" && each.args?.name === "CrRendererMain")
      .map((each) => `${each.pid} ${each.tid}`),
  );
  return events
    .filter((each) => each.name === "RunTask" && main.has(`${each.pid} ${each.tid}`))
    .map((each) => ({ length_ms: (each.dur ?? 0) / 1000, cpu_ms: (each.tdur ?? each.dur ?? 0) / 1000 }));
}
