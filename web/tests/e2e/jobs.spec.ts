import { expect, expectAccessible, inTheme, picture, THEMES, test } from "./screen";
import { startServer } from "./server";

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
  const done = page.getByRole("row", { name: /llama-3\.1-8b 16 dgx-h100 256 × 8,192 .*done/ });
  await done.last().getByRole("link").first().click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("llama-3.1-8b on 16 devices of dgx-h100");
  await expect(page.getByText("256 samples of 8,192 tokens")).toBeVisible();
  await expect(page.getByRole("heading", { name: "Best plan and bound" })).toBeVisible();
  await expect(page.getByRole("img", { name: /the best plan takes/ })).toBeVisible();
  await expectAccessible(page);
  await picture(page, "job-done");
  await page.getByRole("link", { name: "Open the plan" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(/llama-3\.1-8b on 16/);
});

test("a long search is watched, stopped, and its best plan is kept", async ({ page }) => {
  const server = await startServer("--empty", "--synchronous-s", "1");
  try {
    await page.goto(`${server.address}/?model=deepseek-v3&devices=8192&batch=61440&seq=4096`);
    await expect(page.getByText(/parameters on [\d,]+ devices/)).toBeVisible();
    await page.getByRole("button", { name: "Plan", exact: true }).click();
    await expect(page).toHaveURL(/\/jobs\/.+follow=true/);
    await expect(page.getByRole("img", { name: /the best plan takes [\d.]+/ })).toBeVisible();
    await picture(page, "job-running");
    await page.getByRole("button", { name: "Stop and keep the best plan" }).click();
    await expect(page).toHaveURL(/\/plans\/[0-9a-f]{64}$/);
    await expect(page.getByRole("heading", { level: 1 })).toHaveText(/deepseek-v3 on 8,192/);
    // A fast machine has proved it by the time it is stopped.
    await expect(page.getByText(/Gap to the bound|proved best/).first()).toBeVisible();
    await picture(page, "plan-with-gap");
    await page.goto(`${server.address}/jobs?status=cancelled`);
    await expect(page.getByText("cancelled, best plan kept")).toBeVisible();
  } finally {
    await server.stop();
  }
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
