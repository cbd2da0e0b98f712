import type { APIRequestContext, Page } from "@playwright/test";
import type { Schemas } from "../../src/api/client";
import { change, count, percent, seconds } from "../../src/lib/format";
import { looksAt } from "./looks";
import {
  expect,
  expectAccessible,
  expectNoSidewaysScroll,
  inTheme,
  picture,
  THEMES,
  test,
  WIDTHS_PX,
} from "./screen";
import { startServer } from "./server";

const times = (page: Page) => page.getByRole("img", { name: /lie in their interval/ });
const ring = (page: Page) => times(page).locator("circle[data-run]");
const panel = (page: Page) => page.getByRole("region", { name: "One run" });

/** Of two colours as the browser computes them, `rgb(1, 2, 3)`; WCAG 2.2, "contrast ratio". */
function contrast(a: string, b: string): number {
  const luminance = (colour: string) => {
    const [red = 0, green = 0, blue = 0] = (colour.match(/[\d.]+/g) ?? []).map((each) => {
      const part = Number(each) / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const [dark = 0, light = 0] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
}

async function summaryOf(request: APIRequestContext, name: string): Promise<Schemas["AccuracySummary"]> {
  const { reports } = (await (await request.get("/v1/accuracy")).json()) as Schemas["AccuracyListing"];
  const found = reports.find((each) => each.name === name);
  if (!found) throw new Error(`no report ${name}`);
  return found;
}

test("every line of every table is the API's group", async ({ page, request }) => {
  const { groups } = await summaryOf(request, "mine");
  for (const axis of ["source", "device", "model"] as const) {
    await page.goto(`/accuracy?report=mine&by=${axis}`);
    const table = page.getByRole("table", { name: `Errors of the step time by ${axis}` });
    const expected = groups[axis].filter((each) => each.group !== "all");
    await expect(table.locator("tbody tr")).toHaveCount(expected.length);
    for (const group of expected)
      await expect(table.getByRole("row").filter({ hasText: group.group }).locator("td")).toHaveText([
        count(group.n),
        percent(group.median_ape),
        percent(group.p90_ape),
        percent(group.mape),
        change(group.bias),
        percent(group.interval_coverage, 0),
      ]);
  }
});

test("the sentence is the API's group of all, and the verdicts are its own", async ({ page, request }) => {
  const all = (await summaryOf(request, "mine")).groups.source.at(-1);
  const { document } = (await (await request.get("/v1/accuracy/mine")).json()) as Schemas["AccuracyView"];
  const told = document.groups.find((each) => each.group === "all") as unknown as {
    oom: { tp: number; fp: number; tn: number; fn: number };
  };
  await page.goto("/accuracy?report=mine");
  await expect(times(page)).toHaveAccessibleName(
    new RegExp(
      `^${all?.n} runs: median error ${percent(all?.median_ape)}, nine in ten within ${percent(all?.p90_ape)}`,
    ),
  );
  const { tp, fp, tn, fn } = told.oom;
  expect(tp + fn).toBeGreaterThan(0);
  await expect(
    page.getByText(`${tp} of ${tp + fn} that ran out of memory were foreseen; ${fp} of ${fp + tn}`),
  ).toBeVisible();
  await expect(page.getByRole("img", { name: /with a measured peak/ })).toBeVisible();
});

test("keys walk the runs, a press picks one, and another browser sees the same", async ({
  page,
  browser,
  baseURL,
  request,
}) => {
  const { document } = (await (
    await request.get("/v1/accuracy/published")
  ).json()) as Schemas["AccuracyView"];
  const rows = document.rows.toSorted(
    (a, b) => (a.measured_step_time_s ?? 0) - (b.measured_step_time_s ?? 0),
  );
  await page.goto("/accuracy");
  await expect(times(page)).toBeVisible();
  await page.keyboard.press("j");
  await expect(panel(page)).toContainText(seconds(rows[0]?.measured_step_time_s));
  await page.keyboard.press("j");
  await expect(panel(page)).toContainText(rows[1]?.id ?? "?");
  await expect(ring(page)).toHaveAttribute("data-run", rows[1]?.id ?? "?");
  const box = await ring(page).boundingBox();
  await page.keyboard.press("Escape");
  await expect(ring(page)).toHaveCount(0);
  await page.mouse.click((box?.x ?? 0) + 8, (box?.y ?? 0) + 8);
  await expect(panel(page)).toContainText(rows[1]?.id ?? "?");
  await expect.poll(() => page.url()).toContain("run=");
  const other = await (await browser.newContext({ baseURL })).newPage();
  await other.goto(page.url());
  await expect(panel(other)).toHaveText((await panel(page).textContent()) ?? "?");
  await other.context().close();
  await page.keyboard.press("?");
  await expect(page.getByText("Run with the largest error")).toBeVisible();
});

for (const theme of THEMES)
  test(`the edges of the bands stand out from both sides, ${theme}`, async ({ page }) => {
    await inTheme(page, theme);
    await page.goto("/accuracy");
    await expect(times(page)).toBeVisible();
    const found = await times(page).evaluate((chart) => {
      const style = (part: string) =>
        getComputedStyle(chart.querySelector(`[class*="_${part}_"]`) as Element);
      const paper = getComputedStyle(document.body).backgroundColor;
      const [wide, narrow] = [style("wide"), style("narrow")];
      return [
        [wide.stroke, wide.fill],
        [wide.stroke, paper],
        [narrow.stroke, narrow.fill],
        [narrow.stroke, wide.fill],
      ] as [string, string][];
    });
    for (const [edge, beside] of found) expect(contrast(edge, beside)).toBeGreaterThanOrEqual(3);
  });

test("choosing in a page that is scrolled leaves it there", async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 700 });
  await page.goto("/accuracy?report=mine");
  await page.getByRole("radio", { name: "by device" }).scrollIntoViewIfNeeded();
  const before = await page.evaluate(() => window.scrollY);
  expect(before).toBeGreaterThan(0);
  await page.getByRole("radio", { name: "by device" }).check();
  await expect(page).toHaveURL(/by=device/);
  expect(await page.evaluate(() => window.scrollY)).toBe(before);
});

test("a name in the table filters, back undoes it, a heading sorts", async ({ page, request }) => {
  const { groups } = await summaryOf(request, "mine");
  await page.goto("/accuracy?report=mine");
  await page.getByRole("button", { name: "lab3/runs" }).click();
  await expect(times(page)).toHaveAccessibleName(/^6 runs:/);
  await expect(page.getByRole("combobox", { name: "Source" })).toHaveValue("lab3/runs");
  await page.goBack();
  await expect(times(page)).toHaveAccessibleName(new RegExp(`^${groups.source.at(-1)?.n} runs:`));
  await page.getByRole("button", { name: "Median error" }).click();
  await expect(page.getByRole("columnheader", { name: /Median error/ })).toHaveAttribute(
    "aria-sort",
    "ascending",
  );
  const least = groups.source.toSorted((a, b) => (a.median_ape ?? 0) - (b.median_ape ?? 0))[0];
  await expect(page.locator("tbody th").first()).toHaveText(least?.group ?? "?");
});

test("the data are a table", async ({ page }) => {
  await page.goto("/accuracy");
  await page.getByText("Show data").first().click();
  await expect(
    page.getByRole("table", { name: /^Measured and predicted step time of 10 runs/ }).getByRole("row"),
  ).toHaveCount(11);
});

test("no run, no report, and a report of one's own", async ({ page }) => {
  await page.goto("/accuracy?device=abacus");
  await expect(page.getByRole("heading", { name: "No run fits these filters" })).toBeVisible();
  await page.getByRole("button", { name: "Show all" }).click();
  await expect(times(page)).toBeVisible();
  await page.goto("/accuracy?report=no-such-report");
  await expect(page.getByRole("alert").first()).toContainText("no-such-report");
});

test("a service without uploads says how one comes", async ({ page }) => {
  const server = await startServer("--empty");
  try {
    await page.goto(`${server.address}/accuracy`);
    await expect(page.getByText("No report has been uploaded yet")).toBeVisible();
    await expect(page.getByText("curl -X PUT")).toBeVisible();
  } finally {
    await server.stop();
  }
});

for (const { theme, width } of looksAt("accuracy", [...WIDTHS_PX, 1280]))
  test(`accuracy at ${width} px, ${theme}`, async ({ page }) => {
    await inTheme(page, theme);
    await page.setViewportSize({ width, height: 900 });
    await page.goto("/accuracy?report=mine&run=3-1-4");
    await expect(ring(page)).toBeVisible();
    await expectNoSidewaysScroll(page);
    await expectAccessible(page);
    await picture(page, `accuracy-${width}-${theme}`);
  });
