import { looksAt } from "./looks";
import { expect, expectAccessible, expectNoSidewaysScroll, inTheme, picture, test } from "./screen";

const SAID = "storage_bandwidth_bytes_per_s=1e11&repair_hours=48&tokens=15e12&price_per_device_hour=2";

test("the tokens a day are those of the API, and the address says what was asked", async ({
  page,
  request,
}) => {
  const view = await (await request.get(`/v1/plans/dense/goodput?${SAID}`)).json();
  await page.goto("/plans/dense/goodput");
  await expect(page.getByRole("heading", { name: "How fast is the storage?" })).toBeVisible();
  await page.getByLabel("Storage, GB/s").fill("100");
  await page.getByLabel("Hours of a repair").fill("48");
  await page.getByLabel("Tokens to train").fill("15e12");
  await page.getByLabel("Price of a device hour").fill("2");
  const facts = page.locator('dl[aria-label="Checkpoints, failures and the goal"]');
  await expect(facts).toContainText(`${Math.round(view.days).toLocaleString("en-US")} days`);
  await expect(page).toHaveURL(/storage=100/);
  await expect(page).toHaveURL(/repair=48/);
  await page.reload();
  await expect(page.getByLabel("Storage, GB/s")).toHaveValue("100");
  await page.getByText("Show data").click();
  const waiting = page
    .getByRole("table", { name: "Parts of the time" })
    .getByRole("row", { name: /Waiting/ });
  await expect(waiting).toContainText(`${(100 * view.lost.waiting).toFixed(2)}`);
  const spares = page.getByRole("table", { name: "What spare nodes give" });
  await expect(spares.getByRole("row")).toHaveCount(view.spares.length + 1);
});

test("what is wrong stands beside its field", async ({ page }) => {
  await page.goto("/plans/dense/goodput?storage=100&spares=2");
  await expect(page.getByText(/depends on how long a repair takes/).first()).toBeVisible();
  await expect(page.getByLabel("Spare nodes", { exact: true })).toHaveAttribute("aria-invalid", "true");
  await page.getByLabel("Hours of a repair").fill("24");
  await expect(page.getByRole("heading", { name: "Where the time goes" })).toBeVisible();
});

for (const { theme, width } of looksAt("goodput")) {
  test(`goodput at ${width} px, ${theme}`, async ({ page }) => {
    await inTheme(page, theme);
    await page.setViewportSize({ width, height: 900 });
    await page.goto("/plans/dense/goodput?storage=100&repair=48&tokens=15e12&price=2");
    await expect(page.getByRole("heading", { name: "Where the time goes" })).toBeVisible();
    await expectNoSidewaysScroll(page);
    await expectAccessible(page);
    await picture(page, `goodput-${width}-${theme}`);
  });
}
