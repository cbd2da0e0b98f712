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

test("a question is planned, and becomes a plan", async ({ page }) => {
  await page.goto("/?model=llama-3.1-8b&devices=8&batch=64&seq=4096");
  await expect(page.getByText(/legal\.$/)).toBeVisible();
  await page.getByRole("button", { name: "Plan", exact: true }).click();
  await expect(page).toHaveURL(/\/plans\/[0-9a-f]{64}$/);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(/llama-3\.1-8b on 8/);
});

test("what is wrong stands beside its field, with what repairs it", async ({ page }) => {
  await page.goto("/");
  await page.getByLabel("Devices").fill("63");
  await expect(page.getByLabel("Devices")).toHaveAttribute("aria-invalid", "true");
  await expect(page.getByText(/use devices 56 or 64/)).toBeVisible();
  await page.getByLabel("Sequence length").fill("many");
  await expect(page.getByLabel("Sequence length")).toHaveAttribute("aria-invalid", "true");
});

test("a question that no plan fits is answered with the reason", async ({ page }) => {
  await page.goto("/?model=llama-3.1-405b&cluster=dgx-a100-80g&devices=8&batch=512&seq=4096");
  await page.getByRole("button", { name: "Plan", exact: true }).click();
  await expect(page.getByText("device memory rules every plan out")).toBeVisible();
  await expect(page.getByText("use 32 devices")).toBeVisible();
  await expectAccessible(page);
});

test("nothing typed is lost: address, reload, other screens", async ({ page }) => {
  await page.goto("/");
  await page.getByLabel("Pin").fill("tp=8, pp=");
  await page.getByLabel("Devices").fill("1x8");
  await expect(page).toHaveURL(/pins=tp%3D8/);
  await expect(page).toHaveURL(/devices=1x8/);
  await page.reload();
  await expect(page.getByLabel("Pin")).toHaveValue("tp=8, pp=");
  await page.goto("/plans");
  await page.getByRole("link", { name: "New plan" }).click();
  await expect(page.getByLabel("Devices")).toHaveValue("1x8");
});

for (const theme of THEMES) {
  for (const width of WIDTHS_PX) {
    test(`new plan at ${width} px, ${theme}`, async ({ page }) => {
      await inTheme(page, theme);
      await page.setViewportSize({ width, height: 900 });
      await page.goto("/?devices=63");
      await expect(page.getByText(/use devices 56 or 64/)).toBeVisible();
      await expectNoSidewaysScroll(page);
      await expectAccessible(page);
      await picture(page, `new-plan-${width}-${theme}`);
    });
  }
}
