/** Plans that an earlier release stored: read as plans of today's back-ends, with what they never said left out. */

import { expect, expectAccessible, expectNoSidewaysScroll, inTheme, picture, THEMES, test } from "./screen";

test("a plan of an earlier release names its back-end and shows every part", async ({ page, request }) => {
  const plan = await (await request.get("/v1/plans/older")).json();
  expect(plan.upgraded_from).toBe(1);
  await page.goto("/plans/older");
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(/by megatron$/);
  await expect(page.getByRole("definition").filter({ hasText: "Proved best" })).toBeVisible();
  // It was compared with nobody.
  await expect(page.getByRole("heading", { name: "Back-ends" })).toHaveCount(0);
  await expectAccessible(page);
  for (const part of ["Timeline", "Memory", "Mesh", "Alternatives", "What-if", "Sensitivity", "Files"]) {
    await page
      .getByRole("navigation", { name: "Views of the plan" })
      .getByRole("link", { name: part, exact: true })
      .click();
    await expect(page.getByRole("link", { name: part, exact: true })).toHaveAttribute("aria-current", "page");
    await expect(page.getByRole("main")).not.toContainText(/undefined|NaN/);
    await expect(page.getByRole("alert")).toHaveCount(0);
  }
});

test("its files are those of its back-end today, and another back-end plans its question", async ({
  page,
  request,
}) => {
  const answer = await (await request.get("/v1/plans/older/emissions")).json();
  await page.goto("/plans/older/files");
  await expect(page.getByLabel("Back-end").locator("option").first()).toHaveText(
    "Megatron-LM 0.19.2 (this plan)",
  );
  const files = page.getByRole("region", { name: "Files", exact: true });
  await expect(files.getByRole("listitem")).toHaveText(Object.keys(answer.files));
  await page.getByLabel("Back-end").selectOption("torchtitan");
  await expect(page.getByRole("heading", { name: /best one of torchtitan 0\.3\.0/ })).toBeVisible();
});

for (const [label, words] of [
  ["older-2021", "Megatron-LM 2.5"],
  ["older-free", "Unrestricted"],
] as const) {
  test(`${words} predicts only: the page says so and plans the question elsewhere`, async ({ page }) => {
    await page.goto(`/plans/${label}/files`);
    await expect(page.getByRole("heading", { name: `${words} predicts only` })).toBeVisible();
    await expect(page.getByRole("alert")).toHaveCount(0);
    await expect(page.getByRole("button", { name: "Download folder" })).toBeDisabled();
    const backend = page.getByLabel("Back-end");
    await expect(backend.locator("option").first()).toHaveText(`${words} (this plan)`);
    await expect(backend.locator("option", { hasText: "Megatron-LM 2.5" })).toHaveCount(
      label === "older-2021" ? 1 : 0,
    );
    await expectAccessible(page);
    await backend.selectOption("megatron");
    await expect(page.getByRole("heading", { name: /best one of megatron 0\.19\.2/ })).toBeVisible();
    await page.goBack();
    await expect(page.getByRole("heading", { name: `${words} predicts only` })).toBeVisible();
  });
}

for (const theme of THEMES) {
  test(`an older plan at 390 px, ${theme}`, async ({ page }) => {
    await inTheme(page, theme);
    await page.setViewportSize({ width: 390, height: 900 });
    await page.goto("/plans/older-2021/files");
    await expect(page.getByRole("heading", { name: /predicts only/ })).toBeVisible();
    await expectNoSidewaysScroll(page);
    await expectAccessible(page);
    await picture(page, `older-390-${theme}`);
  });
}
