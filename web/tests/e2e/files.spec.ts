import { readFile } from "node:fs/promises";
import { looksAt } from "./looks";
import { expect, expectAccessible, expectNoSidewaysScroll, inTheme, picture, test } from "./screen";
import { startServer } from "./server";

test("the files of another back-end are those that the API gives, of a plan that is stored", async ({
  page,
  request,
  baseURL,
}) => {
  await page.goto("/plans/small/files?backend=deepspeed");
  await expect(page.getByRole("heading", { name: /best one of deepspeed/ })).toBeVisible();
  const answer = await (await request.get(`${baseURL}/v1/plans/small/emissions?backend=deepspeed`)).json();
  expect(answer.plan_id).not.toBe(answer.asked_plan_id);
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

test("another back-end plans there, and what that costs is told part by part", async ({ page }) => {
  await page.goto("/plans/small/files");
  const backend = page.getByLabel("Back-end");
  await expect(backend.locator("option").first()).toHaveText(/\(this plan\)$/);
  await expect(backend).toHaveValue("");
  await backend.selectOption({ label: "native PyTorch 2.13.0" });
  await expect(page).toHaveURL(/backend=native/);
  const there = page.getByRole("region", { name: "The plan of native 2.13.0" });
  await expect(there.getByText(/The same question, planned there: .* against this plan\./)).toBeVisible();
  await expect(there.getByRole("img", { name: /^From this plan to native 2\.13\.0: \+/ })).toBeVisible();
  await expectAccessible(page);
  await there.getByRole("link", { name: "Open that plan" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(/by native 2\.13\.0$/);
});

test("an address of an earlier release opens the same back-end", async ({ page }) => {
  await page.goto("/plans/small/files?target=torchtitan&version=0.2.2");
  await expect(page.getByLabel("Back-end")).toHaveValue("torchtitan==0.2.2");
  await expect(page.getByRole("heading", { name: /best one of torchtitan 0\.2\.2/ })).toBeVisible();
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

test("a back-end that can run no plan of the question says why", async ({ page }) => {
  await page.goto("/plans/dense/files?backend=mindspeed");
  const refused = page.getByRole("alert");
  await expect(refused).toContainText("mindspeed can run no plan of this problem");
  await expect(refused).toContainText("trains on devices of Huawei; h100-sxm5-80gb is made by NVIDIA");
  await expect(refused).toContainText("choose another backend");
  // A refused back-end is a choice like the others: the reader goes on from there.
  await expect(page.getByLabel("Back-end")).toHaveValue("mindspeed");
  await expectAccessible(page);
});

test("a search there that takes longer is a job: the page follows it, then the files come", async ({
  page,
  request,
}) => {
  // The least budget that a service can have: no search of that size ends in it.
  const server = await startServer("--empty", "--synchronous-s", "0.001");
  try {
    const workload = { global_batch_size: 4096, sequence_length: 8192 };
    const asked = await request.post(`${server.address}/v1/plans`, {
      headers: { Prefer: "respond-async" },
      data: {
        model: "llama-3.1-405b",
        cluster: "dgx-h100",
        devices: 4096,
        workload,
        constraints: { backends: ["native"] },
      },
    });
    expect(asked.status()).toBe(202);
    const ended = async (job: string) => {
      // The stream of events ends with the job.
      await (await request.get(`${server.address}/v1/jobs/${job}/events`)).text();
      return (await request.get(`${server.address}/v1/jobs/${job}`)).json();
    };
    const here = await ended((await asked.json()).id);
    const files = `/plans/${here.result_plan_id}/files`;
    await page.goto(`${server.address}${files}`);
    await expect(page.getByRole("heading", { name: "train.sh" })).toBeVisible();
    await Promise.all([
      page
        .getByRole("status")
        .filter({ hasText: "The question is planned in that back-end", has: page.getByRole("link") })
        .waitFor(),
      page.getByLabel("Back-end").selectOption("megatron-bridge"),
    ]);
    await expect(page.getByRole("heading", { name: /best one of megatron-bridge/ })).toBeVisible();
    await expect(page.getByRole("status")).toBeHidden();
    const { jobs } = await (await request.get(`${server.address}/v1/jobs`)).json();
    const there = await ended(jobs[0].id);
    expect(jobs).toHaveLength(2);
    const address = `${server.address}/v1/plans/${here.result_plan_id}/emissions?backend=megatron-bridge`;
    const answer = await (await request.get(address)).json();
    expect(answer.plan_id).toBe(there.result_plan_id);
    await expect(page.getByRole("region", { name: "Files", exact: true }).getByRole("listitem")).toHaveText(
      Object.keys(answer.files),
    );
    await expectAccessible(page);
  } finally {
    await server.stop();
  }
});

test("on a narrow screen the open tab is in sight, and Download stands beside the choices on a wide one", async ({
  page,
}) => {
  await page.goto("/plans/small/files");
  const download = page.getByRole("button", { name: "Download folder" });
  await expect(download).toBeEnabled();
  const bottom = async (of: typeof download) => {
    const box = await of.boundingBox();
    return box && box.y + box.height;
  };
  expect(await bottom(download)).toBeCloseTo((await bottom(page.getByLabel("Launcher"))) ?? 0, 0);
  await page.setViewportSize({ width: 390, height: 900 });
  for (const part of ["Sensitivity", "Overview", "Files"]) {
    const tab = page
      .getByRole("navigation", { name: "Views of the plan" })
      .getByRole("link", { name: part, exact: true });
    // Without a pointer: a click would bring it into sight by itself.
    await tab.evaluate((link: HTMLElement) => link.click());
    await expect(tab).toHaveAttribute("aria-current", "page");
    await expect(tab).toBeInViewport({ ratio: 1 });
  }
});

test("a release that is not supported says so", async ({ page }) => {
  await page.goto("/plans/small/files?backend=megatron==0.0.1");
  await expect(page.getByRole("alert")).toContainText("0.0.1");
  await expect(page.getByLabel("Back-end")).toHaveValue("megatron==0.0.1");
});

for (const { theme, width } of looksAt("files")) {
  test(`files at ${width} px, ${theme}`, async ({ page }) => {
    await inTheme(page, theme);
    await page.setViewportSize({ width, height: 900 });
    await page.goto("/plans/small/files?backend=torchtitan");
    await expect(page.getByRole("heading", { name: "train.sh" })).toBeVisible();
    await expectNoSidewaysScroll(page);
    await expectAccessible(page);
    await picture(page, `files-${width}-${theme}`);
  });
}
