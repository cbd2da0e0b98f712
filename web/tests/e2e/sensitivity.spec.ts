import type { Page } from "@playwright/test";
import { looksAt } from "./looks";
import {
  expect,
  expectAccessible,
  expectNoSidewaysScroll,
  inTheme,
  picture,
  test,
  WIDTHS_PX,
} from "./screen";

const tornado = (page: Page) => page.getByRole("img", { name: /Speed depends most on/ });

test("the tornado says what the API says, widest first", async ({ page, request }) => {
  const view = await (await request.get("/v1/plans/dense/sensitivity")).json();
  await page.goto("/plans/dense/sensitivity");
  await expect(page.getByRole("img", { name: view.summary })).toBeVisible();
  const names = view.tornado.map((each: { lever: string }) => each.lever.replaceAll("_", " "));
  for (const name of names) await expect(tornado(page)).toContainText(name);
  await page.getByText("Show data").click();
  const table = page.getByRole("table", { name: "Every input under every change" });
  await expect(table.getByRole("row")).toHaveCount(view.points.length + 1);
  await expect(table).toContainText("does not fit");
});

test("keys walk over the inputs, and the address says which", async ({ page }) => {
  await page.goto("/plans/dense/sensitivity");
  await expect(page.getByRole("table", { name: "When compute rate is off" })).toBeVisible();
  await page.keyboard.press("j");
  await expect(page).toHaveURL(/lever=scale_up_bandwidth/);
  await expect(page.getByRole("table", { name: "When scale up bandwidth is off" })).toBeVisible();
  await page.reload();
  await expect(page.getByRole("table", { name: "When scale up bandwidth is off" })).toBeVisible();
  await page.keyboard.press("k");
  await page.keyboard.press("k");
  // Before the first comes the last.
  const last = await page
    .getByRole("combobox", { name: "Input", exact: true })
    .locator("option")
    .last()
    .getAttribute("value");
  await expect(page).toHaveURL(new RegExp(`lever=${last}(&|$)`));
});

test("changes of another size are another question, and back goes back", async ({ page }) => {
  await page.goto("/plans/dense/sensitivity");
  const reach = page.getByRole("combobox", { name: /Inputs off by/ });
  await reach.selectOption("50");
  await expect(page.getByRole("table", { name: /When compute/ })).toContainText("+50.0");
  await page.goBack();
  await expect(reach).toHaveValue("10,20");
});

test("the plan is searched again under each change, and shows where it flips", async ({ page, request }) => {
  test.setTimeout(180_000);
  await page.goto("/plans/dense/sensitivity?by=10");
  await page.getByRole("button", { name: "Where does the plan flip?" }).click();
  await expect(page.getByRole("status").filter({ hasText: /of 2 done|Searched again/ })).toBeVisible();
  await expect(page.getByText(/Searched again in 10 cases/)).toBeVisible();
  const path = "/v1/plans/dense/sensitivity?changes=0.1&replan=true";
  const { points } = await (await request.get(path)).json();
  const memory = points.find((each: { lever: string }) => each.lever === "memory_capacity");
  expect(memory.stays_best).toBe(false);
  await page.getByRole("combobox", { name: "Input", exact: true }).selectOption("memory_capacity");
  const row = page.getByRole("row", { name: /memory capacity \+10/ });
  await expect(row).toContainText(memory.best_strategy_changes.join(", "));
  await picture(page, "sensitivity-flips");
});

test("a plan that is not there leans on nothing", async ({ page }) => {
  await page.goto("/plans/no-such-label/sensitivity");
  await expect(page.getByRole("alert")).toContainText("no-such-label");
});

for (const { theme, width } of looksAt("sensitivity", [...WIDTHS_PX, 1280])) {
  test(`sensitivity at ${width} px, ${theme}`, async ({ page }) => {
    await inTheme(page, theme);
    await page.setViewportSize({ width, height: 900 });
    await page.goto("/plans/moe/sensitivity");
    await expect(tornado(page)).toBeVisible();
    await expectNoSidewaysScroll(page);
    await expectAccessible(page);
    await picture(page, `sensitivity-${width}-${theme}`);
  });
}
