/** How long does a step of 50,688 actions block the page, and how smoothly does it move? */

import type { Page } from "@playwright/test";
import { expect, test } from "../e2e/screen";

interface Frames {
  longest_task_ms: number;
  tasks_over_50_ms: number;
  frames: number;
  seconds: number;
  slowest_frame_ms: number;
}

declare global {
  interface Window {
    tasks_ms: number[];
    frames_ms: number[];
  }
}

test("a step of 50,688 actions", async ({ page }) => {
  test.setTimeout(120_000);
  await page.addInitScript(() => {
    window.tasks_ms = [];
    window.frames_ms = [];
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) window.tasks_ms.push(entry.duration);
    }).observe({ entryTypes: ["longtask"] });
    let before = 0;
    const tick = (now: number) => {
      if (before) window.frames_ms.push(now - before);
      before = now;
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
  await page.setViewportSize({ width: 1600, height: 1000 });
  await page.goto("/plans/long/timeline");
  const chart = page.getByRole("application", { name: /Timeline/ });
  await expect(chart).toBeVisible();
  report("loading", await read(page));

  const box = await chart.boundingBox();
  if (!box) throw new Error("no chart");
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await reset(page);
  await chart.focus();
  await page.mouse.move(x, y);
  for (let turn = 0; turn < 60; turn++) await page.mouse.wheel(0, turn < 40 ? -100 : 100);
  report("wheel: closer, farther", await read(page));

  await page.keyboard.press("0");
  await reset(page);
  for (let press = 0; press < 40; press++)
    await page.keyboard.press(press < 6 ? "w" : press < 23 ? "d" : "a");
  report("keys: closer, later, earlier", await read(page));

  await reset(page);
  await page.mouse.down();
  for (let move = 0; move < 120; move++) await page.mouse.move(x + 300 * Math.sin(move / 12), y);
  await page.mouse.up();
  report("drag", await read(page));

  await page.keyboard.press("0");
  await page.keyboard.press("c");
  await reset(page);
  for (let move = 0; move < 120; move++)
    await page.mouse.move(x + 300 * Math.sin(move / 12), y + 80 * Math.cos(move / 7));
  report("pointer over the whole step, critical path shown", await read(page));
});

async function reset(page: Page): Promise<void> {
  await page.evaluate(() => {
    window.tasks_ms = [];
    window.frames_ms = [];
  });
}

async function read(page: Page): Promise<Frames> {
  // The browser reports a task after it has ended.
  await page.waitForTimeout(300);
  return page.evaluate(() => {
    const total_ms = window.frames_ms.reduce((sum, each) => sum + each, 0);
    return {
      longest_task_ms: Math.max(0, ...window.tasks_ms),
      tasks_over_50_ms: window.tasks_ms.length,
      frames: window.frames_ms.length,
      seconds: total_ms / 1000,
      slowest_frame_ms: Math.max(0, ...window.frames_ms),
    };
  });
}

function report(
  what: string,
  { longest_task_ms, tasks_over_50_ms, frames, seconds, slowest_frame_ms }: Frames,
): void {
  const fps = frames / seconds;
  // biome-ignore lint/suspicious/noConsole: a measurement is its print
  console.log(
    `${what}: ${fps.toFixed(1)} frames/s over ${seconds.toFixed(1)} s, slowest frame ${slowest_frame_ms.toFixed(0)} ms, ` +
      `longest task ${longest_task_ms ? `${longest_task_ms.toFixed(0)} ms` : "under 50 ms"} (${tasks_over_50_ms} over 50 ms)`,
  );
}
