import { readFile } from "node:fs/promises";
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

test("the files are those that the API gives", async ({ page, request, baseURL }) => {
  const answer = await (await request.get(`${baseURL}/v1/plans/small/emissions/deepspeed`)).json();
  await page.goto("/plans/small/files?target=deepspeed");
  const files = page.getByRole("region", { name: "Files", exact: true });
  await expect(files.getByRole("listitem")).toHaveText(Object.keys(answer.files));
  await files.getByRole("button", { name: "ds_config.json" }).click();
  await expect(
    page
      .getByRole("region", { name: /^Text of ds_config\.json/ })
      .locator("pre")
      .last(),
  ).toHaveText(answer.files["ds_config.json"], { useInnerText: true });
  await expect(page.getByText(answer.manifest.launch_command)).toBeVisible();
});

test("an address opens the very file, and back goes to the one before", async ({ page }) => {
  await page.goto("/plans/small/files?launcher=slurm&file=PLAN.md");
  await expect(page.getByRole("heading", { name: "PLAN.md" })).toBeVisible();
  await expect(page.getByLabel("Launcher")).toHaveValue("slurm");
  await page.getByRole("button", { name: "megatron.args" }).click();
  await expect(page).toHaveURL(/file=megatron\.args/);
  await page.goBack();
  await expect(page.getByRole("heading", { name: "PLAN.md" })).toBeVisible();
});

test("a file is copied, and the folder is taken along", async ({ page, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.goto("/plans/small/files?file=train.sh");
  await page.getByRole("button", { name: "Copy file" }).click();
  await expect(page.getByRole("button", { name: "Copied" })).toBeVisible();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toMatch(/^#!/);
  const [folder] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Download folder" }).click(),
  ]);
  expect(folder.suggestedFilename()).toMatch(/^[0-9a-f]{12}-megatron-torchrun\.zip$/);
  expect((await readFile(await folder.path())).subarray(0, 2).toString()).toBe("PK");
  const [file] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Download file" }).click(),
  ]);
  expect(file.suggestedFilename()).toBe("train.sh");
});

test("a target that cannot run the plan says why", async ({ page }) => {
  await page.goto("/plans/dense/files?target=mindspeed");
  await expect(page.getByRole("alert")).toContainText("Huawei Ascend");
  await expectAccessible(page);
});

test("a release that is not supported says so", async ({ page }) => {
  await page.goto("/plans/small/files");
  await page.getByLabel("Release").fill("0.0.1");
  await expect(page.getByRole("alert")).toContainText("0.0.1");
  await expect(page).toHaveURL(/version=0\.0\.1/);
});

for (const theme of THEMES) {
  for (const width of WIDTHS_PX) {
    test(`files at ${width} px, ${theme}`, async ({ page }) => {
      await inTheme(page, theme);
      await page.setViewportSize({ width, height: 900 });
      await page.goto("/plans/small/files?target=torchtitan");
      await expect(page.getByRole("heading", { name: "train.sh" })).toBeVisible();
      await expectNoSidewaysScroll(page);
      await expectAccessible(page);
      await picture(page, `files-${width}-${theme}`);
    });
  }
}
