/**
 * What does it cost to open each screen first, with nothing in the browser's store?  The budget of Lighthouse, by the
 * numbers that a busy machine does not change: bytes, requests, shifts of the layout and processor time of the page.
 * How long it took by the clock is printed: the target is 1 s until the screen is there and answers keys.
 */

import type { CDPSession, Page } from "@playwright/test";
import { expect, test } from "./screen";

// A recording costs as much as the page itself, also where MESHWRIGHT_TRACE asks for one.
test.use({ trace: "off" });

const SCREENS = [
  ["New plan", "/"],
  ["Plans", "/plans"],
  ["Overview", "/plans/dense"],
  ["Timeline", "/plans/five-chunks/timeline"],
  ["Memory", "/plans/dense/memory"],
  ["Mesh map", "/plans/dense/mesh"],
  ["Alternatives", "/plans/dense/alternatives"],
  ["What-if", "/plans/dense/what-if"],
  ["Sensitivity", "/plans/dense/sensitivity"],
  ["Files", "/plans/dense/files"],
  ["Diagnose", "/plans/dense/diagnose"],
  ["Diff", "/diff/dense/dense-wide"],
  ["Jobs", "/jobs"],
  ["Compare", "/compare"],
  ["Clusters & profiles", "/clusters"],
  ["Accuracy", "/accuracy"],
] as const;

const BUDGET = {
  script_bytes: 150_000,
  /** Most of it are the columns of the timeline. */
  all_bytes: 700_000,
  requests: 50,
  /** Lighthouse calls more than this a page that moves under the hand. */
  layout_shift: 0.1,
  processor_ms: 1000,
} as const;

interface Opened {
  ready_ms: number;
  first_paint_ms: number;
  largest_paint_ms: number;
  blocked_ms: number;
  layout_shift: number;
  script_bytes: number;
  all_bytes: number;
  requests: number;
  elsewhere: string[];
}

declare global {
  interface Window {
    seen: { shift: number; blocked_ms: number; largest_ms: number };
  }
}

/** In the page, before anything of it: what only an observer hears. */
function watch(): void {
  const seen = { shift: 0, blocked_ms: 0, largest_ms: 0 };
  window.seen = seen;
  const observe = (type: string, each: (entry: PerformanceEntry) => void) =>
    new PerformanceObserver((list) => list.getEntries().forEach(each)).observe({ type, buffered: true });
  observe("layout-shift", (entry) => {
    const { value, hadRecentInput } = entry as PerformanceEntry & { value: number; hadRecentInput: boolean };
    if (!hadRecentInput) seen.shift += value;
  });
  observe("longtask", (entry) => {
    seen.blocked_ms += entry.duration - 50;
  });
  observe("largest-contentful-paint", (entry) => {
    seen.largest_ms = entry.startTime;
  });
}

/** When the screen has its heading and nothing of it is still loading, in ms since the address was opened. */
async function ready(page: Page): Promise<number> {
  const moment = await page.waitForFunction(
    () => {
      const there = document.querySelector("main h1") !== null;
      const loading = [...document.querySelectorAll('main [role="status"]')].some((each) =>
        each.textContent?.startsWith("Loading"),
      );
      return there && !loading && document.querySelector('main [aria-busy="true"]') === null
        ? performance.now()
        : false;
    },
    null,
    { polling: "raf" },
  );
  return (await moment.jsonValue()) as number;
}

function account(): Omit<Opened, "ready_ms"> {
  const resources = performance.getEntriesByType("resource") as PerformanceResourceTiming[];
  const [document_] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
  const packed = (entries: readonly PerformanceResourceTiming[]) =>
    entries.reduce((sum, each) => sum + each.encodedBodySize, 0);
  return {
    first_paint_ms: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.NaN,
    largest_paint_ms: window.seen.largest_ms,
    blocked_ms: window.seen.blocked_ms,
    layout_shift: window.seen.shift,
    script_bytes: packed(resources.filter((each) => new URL(each.name).pathname.endsWith(".js"))),
    all_bytes: packed(resources) + (document_?.encodedBodySize ?? 0),
    requests: resources.length + 1,
    elsewhere: resources.map((each) => new URL(each.name).origin).filter((each) => each !== location.origin),
  };
}

async function processor_ms(session: CDPSession): Promise<number> {
  const { metrics } = await session.send("Performance.getMetrics");
  return 1000 * (metrics.find((each) => each.name === "TaskDuration")?.value ?? Number.NaN);
}

for (const [name, path] of SCREENS) {
  test(`${name} opens within the budget`, { tag: "@alone" }, async ({ page }) => {
    await page.addInitScript(watch);
    const session = await page.context().newCDPSession(page);
    await session.send("Performance.enable", { timeDomain: "threadTicks" });
    const before_ms = await processor_ms(session);
    await page.goto(path);
    const ready_ms = await ready(page);
    const spent_ms = (await processor_ms(session)) - before_ms;
    // The screen answers: its keys are there.
    await page.keyboard.press("?");
    await expect(page.getByRole("dialog", { name: "Keys" })).toBeVisible();
    const opened: Opened = { ready_ms, ...(await page.evaluate(account)) };
    process.stdout.write(
      `     ${name}: ready after ${opened.ready_ms.toFixed(0)} ms, first paint ${opened.first_paint_ms.toFixed(0)} ms, ` +
        `largest ${opened.largest_paint_ms.toFixed(0)} ms, blocked ${opened.blocked_ms.toFixed(0)} ms; ` +
        `${spent_ms.toFixed(0)} ms of processor time; ${opened.script_bytes} bytes of scripts, ` +
        `${opened.all_bytes} in ${opened.requests} requests; shift ${opened.layout_shift.toFixed(3)}\n`,
    );
    expect(opened.elsewhere).toEqual([]);
    expect(opened.script_bytes).toBeGreaterThan(0);
    expect(opened.script_bytes).toBeLessThanOrEqual(BUDGET.script_bytes);
    expect(opened.all_bytes).toBeLessThanOrEqual(BUDGET.all_bytes);
    expect(opened.requests).toBeLessThanOrEqual(BUDGET.requests);
    expect(opened.layout_shift).toBeLessThanOrEqual(BUDGET.layout_shift);
    expect(spent_ms).toBeGreaterThan(0);
    expect(spent_ms).toBeLessThanOrEqual(BUDGET.processor_ms);
  });
}
