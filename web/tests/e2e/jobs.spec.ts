import { expect, expectAccessible, inTheme, picture, THEMES, test } from "./screen";

for (const theme of THEMES) {
  test(`jobs, ${theme}`, async ({ page }) => {
    await inTheme(page, theme);
    await page.goto("/jobs");
    await expect(page.getByText("no plan fits")).toBeVisible();
    await expectAccessible(page);
    await picture(page, `jobs-${theme}`);
  });
}

test("a job that ended shows its search and leads to its plan", async ({ page }) => {
  await page.goto("/jobs");
  await page.getByRole("row", { name: /done/ }).last().getByRole("link").first().click();
  await expect(page.getByRole("heading", { name: "Best plan and bound" })).toBeVisible();
  await expect(page.getByRole("img", { name: /the best plan takes/ })).toBeVisible();
  await expectAccessible(page);
  await picture(page, "job-done");
  await page.getByRole("link", { name: "Open the plan" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(/llama-3\.1-8b on 16/);
});

test("a job without any plan says which limit rules them out", async ({ page }) => {
  await page.goto("/jobs");
  await page
    .getByRole("row", { name: /no plan fits/ })
    .getByRole("link")
    .first()
    .click();
  await expect(page.getByText("device memory rules every plan out")).toBeVisible();
  await picture(page, "job-infeasible");
});
