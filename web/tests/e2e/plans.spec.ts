import { looksAt } from "./looks";
import { expect, expectAccessible, expectNoSidewaysScroll, inTheme, picture, test } from "./screen";

test("the list is filtered by model, and the address keeps it", async ({ page }) => {
  await page.goto("/plans");
  const rows = page.getByRole("table").locator("tbody tr");
  await expect(rows.first()).toBeVisible();
  await page.getByLabel("Model").selectOption("mixtral-8x7b");
  await expect(page).toHaveURL(/model=mixtral-8x7b/);
  const others = rows.filter({ hasNotText: "mixtral-8x7b" });
  await expect(others).toHaveCount(0);
  await page.reload();
  await expect(rows.filter({ hasText: "moe" })).toHaveCount(1);
  await expect(others).toHaveCount(0);
  await page.getByLabel("Cluster").selectOption("gb200-nvl72");
  await expect(rows).toHaveCount(1);
  await expect(rows).toContainText("rack");
  await page.getByLabel("Cluster").selectOption("tpu-v5p");
  await expect(page.getByRole("heading", { name: "No plan fits these filters" })).toBeVisible();
  await page.goBack();
  await expect(rows).toHaveCount(1);
});

test("the list says which back-end runs a plan, and is filtered by it", async ({
  page,
  request,
  baseURL,
}) => {
  const { plans } = await (await request.get(`${baseURL}/v1/plans?backend=native`)).json();
  await page.goto("/plans");
  await page.getByLabel("Back-end").selectOption("native");
  await expect(page).toHaveURL(/backend=native/);
  const rows = page.getByRole("table").locator("tbody tr");
  await expect(rows).toHaveCount(plans.length);
  await expect(rows.filter({ hasText: "long" })).toContainText("native 2.13.0");
  await expect(rows.filter({ hasText: /megatron/ })).toHaveCount(0);
});

test("the list is sorted by a column, and two of its plans are compared", async ({ page }) => {
  await page.goto("/plans");
  const rows = page.getByRole("table").locator("tbody tr");
  await expect(rows.first()).toBeVisible();
  await page.getByRole("button", { name: "Step time" }).click();
  await expect(page.getByRole("columnheader", { name: "Step time" })).toHaveAttribute(
    "aria-sort",
    /ascending|descending/,
  );
  const first = rows.filter({ hasText: "dense" }).first().getByRole("checkbox");
  await first.focus();
  await page.keyboard.press("Space");
  await expect(page.getByText("choose one more")).toBeVisible();
  await rows.filter({ hasText: "moe" }).first().getByRole("checkbox").check();
  await page.getByRole("link", { name: /^Compare .* with / }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Plan a against plan b");
});

test("a plan is opened by its label or the beginning of its id", async ({ page, request, baseURL }) => {
  const dense = await (await request.get(`${baseURL}/v1/plans/dense`)).json();
  for (const name of ["dense", dense.plan_id.slice(0, 8)]) {
    await page.goto("/plans");
    await page.getByLabel("Label or id").fill(name);
    await page.getByRole("button", { name: "Open" }).click();
    await expect(page.getByRole("heading", { level: 1 })).toHaveText(/llama-3\.1-70b on 64/);
  }
});

test("a label is set, refused when it cannot be one, and moves", async ({ page }) => {
  await page.goto("/plans/moe");
  await page.getByRole("button", { name: "Label" }).click();
  await page.getByRole("textbox", { name: "Label" }).fill("0123abcd");
  await page.getByRole("button", { name: "Set the label" }).click();
  await expect(page.getByRole("dialog").getByRole("alert")).toBeVisible();
  await expectAccessible(page);
  await page.getByRole("textbox", { name: "Label" }).fill("nightly");
  await page.getByRole("button", { name: "Set the label" }).click();
  await expect(page.getByRole("link", { name: "nightly" })).toBeVisible();
  await page.goto("/plans/nightly");
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(/mixtral-8x7b on 32/);
});

test("the question of a plan is asked again, whole", async ({ page, request, baseURL }) => {
  const small = await (await request.get(`${baseURL}/v1/plans/small`)).json();
  await page.goto("/plans/small");
  await page.getByRole("link", { name: "Change the question" }).click();
  await expect(page.getByLabel("Price, $ a device-hour")).toHaveValue("2.5");
  await expect(page.getByText(/parameters on [\d,]+ devices/)).toBeVisible();
  await page.getByRole("button", { name: "Plan", exact: true }).click();
  await expect(page).toHaveURL(new RegExp(`/plans/${small.plan_id}$`));
});

test("a plan is saved as one HTML file", async ({ page }) => {
  await page.goto("/plans/small");
  const [file] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Save as HTML" }).click(),
  ]);
  expect(file.suggestedFilename()).toMatch(/^plan-[0-9a-f]{12}\.html$/);
});

for (const { theme, width } of looksAt("plans")) {
  test(`plans at ${width} px, ${theme}`, async ({ page }) => {
    await inTheme(page, theme);
    await page.setViewportSize({ width, height: 900 });
    await page.goto("/plans");
    await expect(page.getByRole("link", { name: "dense", exact: true })).toBeVisible();
    await expectNoSidewaysScroll(page);
    await expectAccessible(page);
    await picture(page, `plans-${width}-${theme}`);
  });
}
