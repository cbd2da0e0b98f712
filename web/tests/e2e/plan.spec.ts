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

test("a plan says how fast, how sure, how full, and why", async ({ page }) => {
  await page.goto("/plans/dense");
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(/llama-3\.1-70b on 64/);
  await expect(page.getByRole("definition").filter({ hasText: "Proved best" })).toBeVisible();
  await expect(page.getByText("Step time is datasheet")).toBeVisible();
  await expect(page.getByText(/It is proved best: of [\d,]+ strategies/)).toBeVisible();
  await expect(page.getByRole("img", { name: /compute takes/ })).toBeVisible();
});

test("the data behind the breakdown are a table", async ({ page }) => {
  await page.goto("/plans/dense");
  await page.getByText("Show data").click();
  const table = page.getByRole("table", { name: "Parts of the step time" });
  await expect(table.getByRole("rowheader", { name: "Compute", exact: true })).toBeVisible();
});

test("the keys 1 to 8 walk over the tabs, and back goes back", async ({ page }) => {
  await page.goto("/plans/dense");
  await expect(page.getByRole("definition").filter({ hasText: "Proved best" })).toBeVisible();
  const tabs = page.getByRole("navigation", { name: "Views of the plan" });
  for (const [key, tab] of [
    ["2", "Timeline"],
    ["8", "Files"],
  ]) {
    await page.keyboard.press(String(key));
    await expect(tabs.getByRole("link", { name: tab })).toHaveAttribute("aria-current", "page");
  }
  await page.goBack();
  await expect(page).toHaveURL(/\/plans\/dense\/timeline$/);
});

test("a plan that is not there is a problem with its reason", async ({ page }) => {
  await page.goto("/plans/no-such-label");
  await expect(page.getByRole("alert")).toContainText("no-such-label");
});

for (const theme of THEMES) {
  for (const width of WIDTHS_PX) {
    test(`plan at ${width} px, ${theme}`, async ({ page }) => {
      await inTheme(page, theme);
      await page.setViewportSize({ width, height: 900 });
      await page.goto("/plans/dense");
      await expect(page.getByText(/It is proved best/)).toBeVisible();
      await expectNoSidewaysScroll(page);
      await expectAccessible(page);
      await picture(page, `plan-${width}-${theme}`);
    });
  }
}
