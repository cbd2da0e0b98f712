import type { Locator, Page } from "@playwright/test";
import { expect, inTheme, test } from "./screen";
import { chart, open, search } from "./timeline";
import { atRest, scrolled, slide } from "./touch";

test.use({ hasTouch: true, viewport: { width: 390, height: 800 } });

const map = (page: Page) => page.getByRole("application", { name: /coordinate of every rank/ });
const number = (page: Page, name: string) => Number(search(page).get(name) ?? Number.NaN);

/** Where the chart is, after it has been brought into the middle of the screen. */
async function boxOf(found: Locator) {
  await found.evaluate((element) => element.scrollIntoView({ block: "center" }));
  const box = await found.boundingBox();
  if (!box) throw new Error("nothing to touch");
  return box;
}

test("two fingers zoom the timeline, and what is under them stays under them", async ({ page }) => {
  await open(page, "/plans/small/timeline");
  const box = await boxOf(chart(page));
  const whole = Number(
    await page.getByRole("slider", { name: "End of the window" }).getAttribute("aria-valuemax"),
  );
  const before = await scrolled(page);
  const [y, at] = [box.y + 30, (part: number) => Math.round(box.x + part * box.width)];
  await slide(page, [
    [
      [at(0.4), y],
      [at(0.2), y],
    ],
    [
      [at(0.6), y + 10],
      [at(0.8), y + 10],
    ],
  ]);
  await expect.poll(() => search(page).has("from_ns")).toBe(true);
  const time = (part: number) =>
    number(page, "from_ns") + part * (number(page, "to_ns") - number(page, "from_ns"));
  // The fingers stand on whole pixels, and ten of them apart in height.
  expect(Math.abs(time(0.2) / whole - 0.4)).toBeLessThan(0.01);
  expect(Math.abs(time(0.8) / whole - 0.6)).toBeLessThan(0.01);
  expect(await scrolled(page)).toBe(before);
  expect(await page.evaluate(() => visualViewport?.scale)).toBe(1);
  expect(search(page).has("action")).toBe(false);

  const [from, length] = [number(page, "from_ns"), number(page, "to_ns") - number(page, "from_ns")];
  await slide(page, [
    [
      [at(0.7), y],
      [at(0.4), y],
    ],
  ]);
  await expect.poll(() => number(page, "from_ns")).toBeGreaterThan(from + 0.25 * length);
  expect(Math.abs(number(page, "to_ns") - number(page, "from_ns") - length)).toBeLessThanOrEqual(2);
});

test("one finger up the timeline scrolls the page and moves no window", async ({ page }) => {
  await open(page, "/plans/small/timeline");
  const box = await boxOf(chart(page));
  const before = await scrolled(page);
  const x = box.x + box.width / 2;
  await slide(page, [
    [
      [x, box.y + 40],
      [x, box.y - 160],
    ],
  ]);
  await expect.poll(() => scrolled(page)).toBeGreaterThan(before + 100);
  expect(search(page).has("from_ns")).toBe(false);
  expect(search(page).has("action")).toBe(false);
});

test("on the whole map one finger scrolls the page; two zoom; then one moves the map and no page", async ({
  page,
}) => {
  await inTheme(page, "light");
  await page.goto("/plans/dense/mesh?axis=tp");
  await expect(map(page)).toBeVisible();
  let box = await boxOf(map(page));
  const x = box.x + box.width / 2;
  let y = box.y + box.height / 2;
  let before = await scrolled(page);
  await slide(page, [
    [
      [x, y],
      [x, y - 200],
    ],
  ]);
  await expect.poll(() => scrolled(page)).toBeGreaterThan(before + 100);
  expect(search(page).has("zoom")).toBe(false);
  expect(search(page).has("rank")).toBe(false);

  // A flick goes on for a while: what follows needs the page at rest.
  await atRest(page);
  box = await boxOf(map(page));
  y = box.y + box.height / 2;
  before = await atRest(page);
  await slide(page, [
    [
      [x - 30, y],
      [x - 90, y],
    ],
    [
      [x + 30, y],
      [x + 90, y],
    ],
  ]);
  await expect.poll(() => number(page, "zoom")).toBeCloseTo(3, 1);
  expect(search(page).has("rank")).toBe(false);
  const [mapX, mapY] = [number(page, "x"), number(page, "y")];
  await slide(page, [
    [
      [x, y],
      [x + 60, y + 60],
    ],
  ]);
  await expect.poll(() => number(page, "y")).toBeLessThan(Number.isNaN(mapY) ? 0.5 : mapY);
  expect(number(page, "x")).toBeLessThan(Number.isNaN(mapX) ? 0.5 : mapX);
  expect(await scrolled(page)).toBe(before);
  // Together again: the whole map.
  await slide(page, [
    [
      [x - 120, y],
      [x - 20, y],
    ],
    [
      [x + 120, y],
      [x + 20, y],
    ],
  ]);
  await expect.poll(() => search(page).has("zoom")).toBe(false);
});
