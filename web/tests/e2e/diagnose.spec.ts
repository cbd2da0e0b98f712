import { looksAt } from "./looks";
import { expect, expectAccessible, expectNoSidewaysScroll, inTheme, picture, test } from "./screen";

/** A really executed run whose rank 1 was made slow (tests/recorded_runs). */
const RUN = ["rank0", "rank1"].map((rank) => `../tests/samples/runs/experts-slow-rank/${rank}.json.gz`);

for (const { theme, width } of looksAt("diagnose")) {
  test(`a run is compared with the plan at ${width} px, ${theme}`, async ({ page }) => {
    await inTheme(page, theme);
    await page.setViewportSize({ width, height: 900 });
    await page.goto("/plans/dense/diagnose");
    const compare = page.getByRole("button", { name: "Compare with the plan" });
    await expect(compare).toBeDisabled();
    await page.locator("input[type=file]").setInputFiles(RUN);
    await compare.focus();
    const answered = page.waitForResponse("**/diagnosis");
    await page.keyboard.press("Enter");
    const diagnosis = await (await answered).json();
    const found = page.locator("li[data-kind]");
    await expect(found).toHaveCount(diagnosis.findings.length);
    await expect(found.nth(0)).toHaveAttribute("data-kind", "another-run");
    await expect(page.locator("li[data-kind=slow-rank]")).toContainText("Rank 1 takes");
    await page.getByText("Show data").first().click();
    const parts = page.getByRole("table", { name: "Parts of the step" });
    await expect(parts.getByRole("row")).toHaveCount(diagnosis.terms.length + 1);
    await expectNoSidewaysScroll(page);
    await expectAccessible(page);
    await picture(page, `diagnose-${width}-${theme}`);
  });
}

test("a log offers the calibration that makes the plan agree; another file is told what it is not", async ({
  page,
}) => {
  const line = (step: number) =>
    `iteration ${step}/ 100 | elapsed time per iteration (ms): ${71_000 + step}.0 | global batch size: 512 |`;
  const text = Array.from({ length: 12 }, (_, step) => line(step + 1)).join("\n");
  await page.goto("/plans/dense");
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  await page.keyboard.press("g");
  await page.keyboard.press("d");
  const files = page.locator("input[type=file]");
  await files.setInputFiles({ name: "photo.png", mimeType: "image/png", buffer: Buffer.from("\x89PNG") });
  await page.getByRole("button", { name: "Compare with the plan" }).click();
  await expect(page.getByRole("alert")).toContainText("photo.png");
  await page.getByRole("button", { name: "Leave out photo.png" }).click();
  await files.setInputFiles({ name: "train.log", mimeType: "text/plain", buffer: Buffer.from(text) });
  await page.getByRole("button", { name: "Compare with the plan" }).click();
  await expect(page.getByText("Compute takes 1.19 times the prediction.")).toBeVisible();
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save the calibration" }).click();
  expect((await saved).suggestedFilename()).toMatch(/^calibration-.*\.json$/);
});
