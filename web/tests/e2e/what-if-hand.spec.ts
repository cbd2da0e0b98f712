/** How long after the hand are the numbers on the screen?  Printed; the target is 100 ms for 95 of 100. */

import { expect, test } from "./screen";

// A recording costs more than the page itself.
test.use({ trace: "off" });

/** In the page: when each value was put in, and how long after it its number was on the screen. */
function watchLatency(): void {
  const put = new Map<string, number>();
  const samples: number[] = [];
  Object.assign(window, { latency_ms: samples });
  window.addEventListener("input", (event) => {
    const { value } = event.target as HTMLInputElement;
    // New values only: an answer that is kept already takes no time at all.
    if (!put.has(value)) put.set(value, event.timeStamp);
  });
  new MutationObserver((changes) => {
    for (const { target } of changes) {
      const answered = (target as HTMLElement).dataset?.answers;
      const value = answered ? (JSON.parse(answered) as Record<string, string>).nic_bandwidth || "1" : "";
      const since = put.get(value);
      if (since === undefined || since < 0) continue;
      put.set(value, -1);
      requestAnimationFrame(() => setTimeout(() => samples.push(performance.now() - since)));
    }
  }).observe(document, { subtree: true, attributes: true, attributeFilter: ["data-answers"] });
}

test("numbers follow the hand", { tag: "@alone" }, async ({ page }) => {
  await page.addInitScript(watchLatency);
  await page.setViewportSize({ width: 1280, height: 1400 });
  await page.goto("/plans/dense/what-if");
  const estimate = page.getByRole("region", { name: "Estimate", exact: true });
  await expect(estimate).toContainText("as the plan");
  const lever = page.getByRole("slider", { name: "NIC bandwidth" });
  const at = await lever.boundingBox();
  if (!at) throw new Error("no slider");
  const y = at.y + at.height / 2;
  const drag = async (from: number, to: number, waitMs: number) => {
    await page.mouse.move(at.x + 6 + from * (at.width - 12), y);
    await page.mouse.down();
    for (let step = 1; step <= 30; step++) {
      await page.mouse.move(at.x + 6 + (from + ((to - from) * step) / 30) * (at.width - 12), y);
      await page.waitForTimeout(waitMs);
    }
    await page.mouse.up();
  };
  await drag(0.34, 1, 120);
  await drag(0.32, 0, 120);
  await expect(estimate).toHaveAttribute("aria-busy", "false");
  const samples = await page.evaluate(() => (window as unknown as { latency_ms: number[] }).latency_ms);
  const sorted = [...samples].sort((a, b) => a - b);
  const part = (share: number) => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN);
  process.stdout.write(`     what-if: ${sorted.length} numbers, p50 ${part(0.5)} ms, p95 ${part(0.95)} ms\n`);
  expect(sorted.length).toBeGreaterThan(10);
  await expect(page).toHaveURL(/nic_bandwidth=0\.5/);
});
