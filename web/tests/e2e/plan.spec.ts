import { looksAt } from "./looks";
import { expect, expectAccessible, expectNoSidewaysScroll, inTheme, picture, test } from "./screen";

test("a plan says how fast, how sure, how full, and why", async ({ page }) => {
  await page.goto("/plans/dense");
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(/llama-3\.1-70b on 64/);
  await expect(page.getByRole("definition").filter({ hasText: "Proved best" })).toBeVisible();
  await expect(page.getByText("Step time is datasheet")).toBeVisible();
  await expect(page.getByText(/It is proved best: of [\d,]+ strategies/)).toBeVisible();
  await expect(page.getByRole("img", { name: /compute takes/ })).toBeVisible();
});

test("every back-end that was asked stands in the table, and the plan's own row is marked", async ({
  page,
  request,
  baseURL,
}) => {
  const plan = await (await request.get(`${baseURL}/v1/plans/dense`)).json();
  await page.goto("/plans/dense");
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(
    new RegExp(`by ${plan.backend} ${plan.release}$`),
  );
  await expect(
    page.getByText(/no plan in the spaces of the back-ends that were asked is predicted to be faster/),
  ).toBeVisible();
  const rows = page
    .getByRole("table", { name: /fastest plan of each back-end/ })
    .getByRole("row")
    .filter({ has: page.getByRole("rowheader") });
  await expect(rows).toHaveCount(plan.backends.length);
  const names = plan.backends.map(
    (each: { backend: string; release: string }) => `${each.backend} ${each.release}`,
  );
  await expect(rows.getByRole("rowheader")).toHaveText(names);
  await expect(rows.filter({ hasText: "this plan" })).toHaveAttribute("aria-current", "true");
  for (const without of plan.backends.filter((each: { reason: string | null }) => each.reason)) {
    const row = rows.filter({ hasText: without.reason });
    await expect(row.getByRole("button")).toHaveCount(0);
  }
  await expect(page.getByRole("paragraph").filter({ hasText: /^No back-end can run yet:/ })).toContainText(
    plan.unrestricted.why,
  );
  await expectAccessible(page);
});

test("a recommended plan stands beside the fastest one, with the price", async ({
  page,
  request,
  baseURL,
}) => {
  const plan = await (await request.get(`${baseURL}/v1/plans/recommended`)).json();
  expect(plan.fastest.is_recommended).toBe(false);
  await page.goto("/plans/recommended");
  await expect(page.getByRole("definition").filter({ hasText: "Recommended" })).toBeVisible();
  const rows = page
    .getByRole("table", { name: "The recommended plan and the fastest one" })
    .getByRole("row")
    .filter({ has: page.getByRole("rowheader") });
  await expect(rows.getByRole("rowheader")).toHaveText(["Recommended", "Fastest"]);
  await expect(rows.first()).toHaveAttribute("aria-current", "true");
  await expect(page.getByText(`This plan is ${plan.fastest.price}.`)).toBeVisible();
  await expectAccessible(page);
  await page.getByRole("button", { name: "Take the fastest" }).click();
  await expect(page).not.toHaveURL(/\/plans\/recommended/);
  await expect(page.getByRole("definition").filter({ hasText: "Proved best" })).toBeVisible();
});

test("a row leads to the plan of its back-end, which says of which space it is proved best", async ({
  page,
}) => {
  await page.goto("/plans/small");
  await page.getByRole("button", { name: /^Plan there: deepspeed/ }).click();
  await expect(page).toHaveURL(/\/plans\/[0-9a-f]{64}$/);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(/by deepspeed/);
  await expect(page.getByText(/the space of the back-end that was asked/)).toBeVisible();
  await expect(page.getByRole("table", { name: /fastest plan of each back-end/ })).toHaveCount(0);
});

test("the data behind the breakdown are a table", async ({ page }) => {
  await page.goto("/plans/dense");
  await page.getByText("Show data").click();
  const table = page.getByRole("table", { name: "Parts of the step time" });
  await expect(table.getByRole("rowheader", { name: "Compute", exact: true })).toBeVisible();
});

test("the keys 1 to 9 walk over the tabs, and back goes back", async ({ page }) => {
  await page.goto("/plans/dense");
  await expect(page.getByRole("definition").filter({ hasText: "Proved best" })).toBeVisible();
  const tabs = page.getByRole("navigation", { name: "Views of the plan" });
  for (const [key, tab] of [
    ["2", "Timeline"],
    ["8", "Goodput"],
    ["9", "Files"],
  ]) {
    await page.keyboard.press(String(key));
    await expect(tabs.getByRole("link", { name: tab })).toHaveAttribute("aria-current", "page");
  }
  await page.goBack();
  await page.goBack();
  await expect(page).toHaveURL(/\/plans\/dense\/timeline$/);
});

test("a plan that is not there is a problem with its reason", async ({ page }) => {
  await page.goto("/plans/no-such-label");
  await expect(page.getByRole("alert")).toContainText("no-such-label");
});

for (const { theme, width } of looksAt("plan")) {
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
