/** How long does a step of 50,688 actions block the page, and how smoothly does it move? */

import { expect, test } from "../e2e/screen";
import { measured } from "./measured";

test("a step of 50,688 actions", async ({ page, browser }) => {
  test.setTimeout(180_000);
  await page.setViewportSize({ width: 1600, height: 1000 });
  const chart = page.getByRole("application", { name: /Timeline/ });
  await measured("loading", browser, page, async () => {
    await page.goto("/plans/long/timeline");
    await expect(chart).toBeVisible();
  });
  const box = await chart.boundingBox();
  if (!box) throw new Error("no chart");
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await chart.focus();
  await page.mouse.move(x, y);
  await measured("wheel: closer, farther", browser, page, async () => {
    for (let turn = 0; turn < 60; turn++) await page.mouse.wheel(0, turn < 40 ? -100 : 100);
  });
  await page.keyboard.press("0");
  await measured("keys: closer, later, earlier", browser, page, async () => {
    for (let press = 0; press < 60; press++)
      await page.keyboard.press(press < 6 ? "w" : press < 33 ? "d" : "a");
  });
  await page.mouse.down();
  await measured("drag", browser, page, async () => {
    for (let move = 0; move < 120; move++) await page.mouse.move(x + 300 * Math.sin(move / 12), y);
  });
  await page.mouse.up();
  await page.keyboard.press("0");
  await page.keyboard.press("c");
  await measured("pointer over the whole step, critical path shown", browser, page, async () => {
    for (let move = 0; move < 120; move++)
      await page.mouse.move(x + 300 * Math.sin(move / 12), y + 80 * Math.cos(move / 7));
  });
});
