import { readFileSync } from "node:fs";
import { looksAt } from "./looks";
import { expect, expectAccessible, expectNoSidewaysScroll, inTheme, picture, test } from "./screen";

const QUICK = "model=llama-3.1-8b&batch=64&seq=4096&counts=8,16";
const PRICES = 'prices=["dgx-h100=2.5","dgx-a100-80g=1.2"]';

test("points are the API's own numbers, and each opens its plan", async ({ page, request }) => {
  await page.goto(`/compare?${QUICK}&${PRICES}`);
  const table = page.getByRole("table", { name: /^The fastest plan found/ });
  await expect(table.getByRole("row")).toHaveCount(5);
  const row = table.getByRole("row").filter({ hasText: "dgx-h100 × 8" });
  const link = row.getByRole("link");
  const id = (await link.getAttribute("href"))?.split("/").at(-1);
  const plan = await (await request.get(`/v1/plans/${id}`)).json();
  await expect(row).toContainText(`${(plan.model_flops_utilization * 100).toFixed(1)}\u00a0%`);
  const cost = ((2.5 * 8) / 3600 / plan.tokens_per_s) * 1e6;
  await expect(row).toContainText(`$${Number(cost.toFixed(4))}`);
  await expect(page.getByRole("img", { name: /^Lowest: \$/ })).toBeVisible();
});

test("counts that cannot be, and what does not fit, say why", async ({ page }) => {
  await page.goto("/compare?model=llama-3.1-405b&batch=64&seq=4096&counts=8,12&clusters=dgx-a100-80g");
  const table = page.getByRole("table", { name: /^The fastest plan found/ });
  await expect(table.getByRole("row").filter({ hasText: "× 12" })).toContainText("cannot have 12 devices");
  await expect(table.getByRole("row").filter({ hasText: "× 8" })).toContainText(/Does not fit|Undecided/);
});

test("clusters, prices and the point are in the address; keys walk", async ({ page, browser }) => {
  await page.goto(`/compare?${QUICK}`);
  await page.getByLabel("Add a cluster").selectOption("dgx-h200");
  await page.getByLabel(/Price of a device-hour of dgx-h200/).fill("3");
  await expect(page).toHaveURL(/dgx-h200%3D3/);
  await expect(page.getByRole("button", { name: "dgx-h200 × 16" })).toBeVisible();
  await page.getByRole("heading", { name: "Compare clusters" }).click();
  await page.keyboard.press("k");
  await expect(page.getByRole("button", { name: "dgx-h200 × 16" })).toHaveAttribute("aria-pressed", "true");
  const other = await (await browser.newContext()).newPage();
  await other.goto(page.url());
  await expect(other.getByRole("button", { name: "dgx-h200 × 16" })).toHaveAttribute("aria-pressed", "true");
  await expect(other.getByLabel(/Price of a device-hour of dgx-h200/)).toHaveValue("3");
  await other.context().close();
});

test("what is refused stands beside its field", async ({ page }) => {
  await page.goto(`/compare?${QUICK}&clusters=dgx-h100`);
  await page.getByLabel("Sequence length").fill("many");
  await expect(page.getByLabel("Sequence length")).toHaveAttribute("aria-invalid", "true");
  await page.getByLabel("Sequence length").fill("4096");
  await expect(page.getByLabel("Sequence length")).not.toHaveAttribute("aria-invalid");
});

for (const { theme, width } of looksAt("compare")) {
  test(`comparison of clusters at ${width} px, ${theme}`, async ({ page }) => {
    await inTheme(page, theme);
    await page.setViewportSize({ width, height: 900 });
    await page.goto(`/compare?${QUICK}&${PRICES}&point=dgx-h100 16`);
    await expect(page.getByRole("img", { name: /^Lowest/ })).toBeVisible();
    await expectNoSidewaysScroll(page);
    await expectAccessible(page);
    await picture(page, `compare-${width}-${theme}`);
  });
}

test("a budget of tokens gives days and money, and all of it leaves as files", async ({ page }) => {
  const asked = 'counts=64&clusters=["dgx-h100"]&prices=["dgx-h100=2.5"]&tokens=15e12';
  await page.goto(`/compare?model=llama-3.1-70b&batch=512&seq=8192&${asked}`);
  const table = page.getByRole("table", { name: /fastest plan found/ });
  await expect(table.getByRole("columnheader", { name: "Days" })).toBeVisible();
  const row = table.getByRole("row", { name: /dgx-h100 × 64/ });
  await expect(row).toContainText(/\$\d,\d{3},\d{3}/);
  const saved = async (name: string): Promise<string> => {
    const file = page.waitForEvent("download");
    await page.getByRole("button", { name }).first().click();
    const path = await (await file).path();
    return readFileSync(path, "latin1");
  };
  const report = await saved("Save as HTML");
  expect(report).toContain("llama-3.1-70b on dgx-h100");
  expect(report).toContain(
    ((await row.getByRole("cell").nth(2).textContent()) ?? "").replaceAll("\u00a0", "\u00c2\u00a0"),
  );
  expect(report).not.toContain("var(--");
  await page.getByText("Show data").first().click();
  expect(await saved("Save as SVG")).toMatch(/^<svg[^>]*xmlns="http:\/\/www\.w3\.org\/2000\/svg"/);
  expect(await saved("Save as PNG")).toContain("PNG");
});
