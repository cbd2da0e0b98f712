import { looksAt } from "./looks";
import { expect, expectAccessible, expectNoSidewaysScroll, inTheme, picture, test } from "./screen";

test("a model is found by its family, its layers are told, and it is planned", async ({ page }) => {
  await page.goto("/models");
  const rows = page.getByRole("table").first().locator("tbody tr");
  await expect(rows.filter({ hasText: "llama-3.1-405b" })).toContainText("405.9 B");
  await page.getByLabel("Name or family").fill("deepseek_v3");
  await expect(page).toHaveURL(/name=deepseek_v3/);
  await expect(rows.filter({ hasText: "llama" })).toHaveCount(0);
  await page.getByRole("button", { name: "deepseek-v3", exact: true }).click();
  const layers = page.getByRole("table", { name: "What the layers are made of" }).locator("tbody tr");
  await expect(layers).toHaveCount(2);
  await expect(layers.nth(1)).toContainText("256 experts of 2,048, 8 a token, shared 2,048");
  await page.getByRole("link", { name: "Plan it" }).click();
  await expect(page).toHaveURL(/\/\?model=deepseek-v3/);
});

for (const { theme, width } of looksAt("models")) {
  test(`models at ${width} px, ${theme}`, async ({ page }) => {
    await inTheme(page, theme);
    await page.setViewportSize({ width, height: 900 });
    await page.goto("/models?model=gpt-oss-120b");
    await expect(page.getByRole("table", { name: "What the layers are made of" })).toBeVisible();
    await expectNoSidewaysScroll(page);
    await expectAccessible(page);
    await picture(page, `models-${width}-${theme}`);
  });
}
