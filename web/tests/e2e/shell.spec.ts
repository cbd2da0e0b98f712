import { looksAt } from "./looks";
import { expect, expectAccessible, expectNoSidewaysScroll, inTheme, picture, test } from "./screen";

const SCREENS = [
  ["/", "New plan"],
  ["/plans", "Plans"],
  ["/jobs", "Jobs"],
  ["/compare", "Compare clusters"],
  ["/models", "Models"],
  ["/clusters", "Clusters & profiles"],
  ["/accuracy", "Accuracy"],
] as const;

for (const [path, name] of SCREENS) {
  test(`${name} opens by its address and by the navigation`, async ({ page }) => {
    await page.goto(path === "/" ? "/plans" : "/");
    await page.getByRole("navigation", { name: "Screens" }).getByRole("link", { name, exact: true }).click();
    await expect(page).toHaveURL(new RegExp(`${path}(\\?.*)?$`));
    await page.reload();
    await expect(page).toHaveTitle(`${name} · Meshwright`);
    await expect(page.getByRole("navigation", { name: "Breadcrumbs" })).toContainText(name);
  });
}

test("the theme follows the system, then the reader, and is remembered", async ({ page }) => {
  const paper = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  await inTheme(page, "dark");
  await page.goto("/plans");
  const dark = await paper();
  await page.getByLabel("Theme").selectOption("light");
  await expect.poll(paper).toBe("rgb(255, 255, 255)");
  await page.reload();
  await expect(page.getByLabel("Theme")).toHaveValue("light");
  expect(await paper()).toBe("rgb(255, 255, 255)");
  await page.getByLabel("Theme").selectOption("system");
  await expect.poll(paper).toBe(dark);
});

test("keys go everywhere, and ? lists them", async ({ page }) => {
  await page.goto("/");
  await expect(page.getByRole("heading", { name: "New plan" })).toBeVisible();
  await page.keyboard.press("g");
  await page.keyboard.press("p");
  await expect(page).toHaveURL(/\/plans$/);
  await page.keyboard.press("?");
  const keys = page.getByRole("dialog", { name: "Keys" });
  await expect(keys).toContainText("Compare clusters");
  await expectAccessible(page);
  await page.keyboard.press("Escape");
  await expect(keys).toBeHidden();
});

test("the first Tab offers to skip to the content", async ({ page }) => {
  await page.goto("/plans");
  await expect(page.getByRole("heading", { name: "Plans" })).toBeVisible();
  await page.keyboard.press("Tab");
  const skip = page.getByRole("link", { name: "Skip to content" });
  await expect(skip).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("main")).toBeFocused();
});

test("an address of no screen says so and leads on", async ({ page }) => {
  await page.goto("/plans/dense/nowhere");
  await expect(page.getByRole("heading", { name: "There is no such page" })).toBeVisible();
});

for (const { theme, width } of looksAt("shell")) {
  test(`shell at ${width} px, ${theme}`, async ({ page }) => {
    await inTheme(page, theme);
    await page.setViewportSize({ width, height: 900 });
    await page.goto("/accuracy");
    await expect(page.getByRole("navigation", { name: "Screens" })).toBeVisible();
    await expectNoSidewaysScroll(page);
    await expectAccessible(page);
    await picture(page, `shell-${width}-${theme}`);
  });
}
