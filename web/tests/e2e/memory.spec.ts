import type { APIRequestContext, Page } from "@playwright/test";
import type { Schemas } from "../../src/api/client";
import { looksAt } from "./looks";
import { expect, expectAccessible, expectNoSidewaysScroll, inTheme, picture, test } from "./screen";

const stages = (page: Page) => page.getByRole("list", { name: "Stages" }).getByRole("button");
const bill = (page: Page) => page.getByRole("table", { name: /^Bill of stage/ });
const gib = (bytes: number | undefined) => `${((bytes ?? Number.NaN) / 2 ** 30).toFixed(1)}\u00a0GiB`;

async function memoryOf(request: APIRequestContext, plan: string): Promise<Schemas["MemoryView"]> {
  return (await request.get(`/v1/plans/${plan}/memory`)).json();
}

test("bars and bill are the API's numbers", async ({ page, request }) => {
  const view = await memoryOf(request, "dense");
  await page.goto("/plans/dense/memory");
  await expect(page.getByRole("img", { name: /is the fullest of/ })).toHaveAccessibleName(
    new RegExp(`^Stage ${view.worst_stage} .* of the ${gib(view.limit_bytes)} that may be used`),
  );
  for (const [row, stage] of view.stages.entries()) {
    await expect(stages(page).nth(row)).toContainText(gib(stage.peak_memory_bytes.total));
    await expect(stages(page).nth(row)).toContainText(`${gib(stage.spare_bytes)} free`);
  }
  const worst = view.stages.find((each) => each.stage === view.worst_stage);
  for (const [item, name] of [
    ["weights", "Weights"],
    ["activations", "Activations"],
    ["total", "Together"],
  ] as const) {
    const row = bill(page).getByRole("row", { name: new RegExp(`^${name}`) });
    await expect(row).toContainText(gib(worst?.peak_memory_bytes[item]));
  }
});

test("the bars are as long as the bytes", async ({ page, request }) => {
  const view = await memoryOf(request, "dense");
  await page.goto("/plans/dense/memory");
  const svg = page.getByRole("img", { name: /is the fullest of/ });
  await expect(svg).toBeVisible();
  const lengths = await svg.evaluate((node) => {
    const full = Number(node.getAttribute("width"));
    return [...node.querySelectorAll("g[class]")].map((row) => {
      const bars = [...row.querySelectorAll(":scope > g rect")].map((bar) =>
        (bar as SVGRectElement).getBoundingClientRect(),
      );
      const left = Math.min(...bars.map((bar) => bar.left));
      return (Math.max(...bars.map((bar) => bar.right)) - left) / full;
    });
  });
  expect(lengths).toHaveLength(view.stages.length);
  for (const [row, stage] of view.stages.entries())
    expect(lengths[row]).toBeCloseTo((stage.peak_memory_bytes.total ?? 0) / view.device_memory_bytes, 2);
});

test("a press, Enter and keys open the bill of a stage; back goes back", async ({ page }) => {
  await page.goto("/plans/dense/memory");
  await stages(page).nth(3).click();
  await expect(page.getByRole("heading", { name: /^Stage 3:/ })).toBeVisible();
  await stages(page).nth(0).focus();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { name: /^Stage 0:/ })).toBeVisible();
  await page.keyboard.press("j");
  await expect(page.getByRole("heading", { name: /^Stage 1:/ })).toBeVisible();
  await page.goBack();
  await expect(page.getByRole("heading", { name: /^Stage 3:/ })).toBeVisible();
});

test("the fullest first, in a link that another browser opens alike", async ({
  page,
  browser,
  baseURL,
  request,
}) => {
  const view = await memoryOf(request, "dense-wide");
  const totals = view.stages.map((each) => each.peak_memory_bytes.total ?? 0).sort((a, b) => b - a);
  await page.goto("/plans/dense-wide/memory");
  await expect(page.getByRole("radio", { name: "By stage" })).toBeChecked();
  await page.keyboard.press("o");
  await expect(page.getByRole("radio", { name: "Fullest first" })).toBeChecked();
  await expect(stages(page).first()).toContainText(gib(totals[0]));
  await expect(stages(page).last()).toContainText(gib(totals.at(-1)));
  await stages(page).last().click();
  const other = await (await browser.newContext({ baseURL })).newPage();
  await expect.poll(() => page.url()).toContain("stage=");
  await other.goto(page.url());
  await expect(stages(other)).toHaveText(await stages(page).allTextContents());
  await expect(stages(other).last()).toHaveAttribute("aria-pressed", "true");
  await other.context().close();
});

test("the bill leads to the same rank of the timeline", async ({ page }) => {
  await page.goto("/plans/dense/memory?stage=2");
  await page.getByRole("link", { name: "See it over the step" }).click();
  await expect(page.getByRole("button", { name: /^Rank 2:/ })).toHaveAttribute("aria-pressed", "true");
});

test("one stage needs no order", async ({ page }) => {
  await page.goto("/plans/no-pipeline/memory?stage=9&order=size");
  await expect(page.getByRole("img", { name: /Every device holds up to/ })).toBeVisible();
  await expect(page.getByRole("radio")).toHaveCount(0);
  await expect(page.getByRole("heading", { name: /^Stage 0:/ })).toBeVisible();
});

test("the data are a table", async ({ page, request }) => {
  const view = await memoryOf(request, "moe");
  await page.goto("/plans/moe/memory");
  await page.getByText("Show data").click();
  await expect(page.getByRole("table", { name: /^Peak memory of every stage/ }).getByRole("row")).toHaveCount(
    view.stages.length + 1,
  );
});

test("a plan that is not there is a problem with its reason", async ({ page }) => {
  await page.goto("/plans/no-such-label/memory");
  await expect(page.getByRole("alert").first()).toContainText("no-such-label");
});

for (const { theme, width } of looksAt("memory")) {
  test(`memory at ${width} px, ${theme}`, async ({ page }) => {
    await inTheme(page, theme);
    await page.setViewportSize({ width, height: 900 });
    await page.goto("/plans/dense/memory?order=fullest&stage=2");
    await expect(page.getByRole("heading", { name: /^Stage 2:/ })).toBeVisible();
    await expectNoSidewaysScroll(page);
    await expectAccessible(page);
    await picture(page, `memory-${width}-${theme}`);
  });
}
