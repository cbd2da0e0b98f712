import type { Page } from "@playwright/test";
import { seconds } from "../../src/lib/format";
import { looksAt } from "./looks";
import {
  expect,
  expectAccessible,
  expectNoSidewaysScroll,
  inTheme,
  picture,
  slowScript,
  test,
  WIDTHS_PX,
} from "./screen";

const estimate = (page: Page) => page.getByRole("region", { name: "Estimate", exact: true });
const slider = (page: Page, name: string) => page.getByRole("slider", { name });
const box = (page: Page, name: string) => page.getByRole("textbox", { name });

test("with nothing changed the estimate is the plan", async ({ page, request }) => {
  const plan = await (await request.get("/v1/plans/dense")).json();
  await page.goto("/plans/dense/what-if");
  await expect(estimate(page)).toContainText("the plan's own strategy");
  await expect(estimate(page)).toContainText(seconds(plan.step_time_s));
  await expect(estimate(page)).toContainText("as the plan");
  await expect(page.getByRole("button", { name: "Solve" })).toBeDisabled();
});

test("a slider moved by keys shows the API's own number, and dp follows", async ({ page, request }) => {
  const own = (await (await request.get("/v1/plans/dense")).json()).strategy;
  expect(own.tp).toBe(4);
  await page.goto("/plans/dense/what-if");
  await expect(estimate(page)).toContainText("as the plan");
  const answer = page.waitForResponse((response) => response.url().endsWith("/v1/estimates"));
  await slider(page, "Tensor parallel").focus();
  await page.keyboard.press("ArrowRight");
  const { plan } = await (await answer).json();
  // Twice the tensor parallel ranks leave half the replicas, each with twice the micro-batches.
  const [dp, microbatches] = [own.dp / 2, own.num_microbatches * 2];
  expect(plan.strategy).toMatchObject({ tp: 8, dp, num_microbatches: microbatches });
  await expect(estimate(page)).toContainText(seconds(plan.step_time_s));
  await expect(estimate(page)).toContainText(`dp ${dp}, ${microbatches} micro-batches`);
  await expect(box(page, "Tensor parallel")).toHaveValue("8");
  await expect(page).toHaveURL(/tp=8/);
  await page.goBack();
  await expect(box(page, "Tensor parallel")).toHaveValue("4");
});

test("a reader who leaves while a slider still moves is not led back", async ({ page }) => {
  await page.goto("/plans/dense/what-if");
  await expect(estimate(page)).toContainText("as the plan");
  await slowScript(page, "memory", 1000);
  await slider(page, "Tensor parallel").focus();
  await page.keyboard.press("ArrowRight");
  await page.getByRole("link", { name: "Memory", exact: true }).click();
  await expect(page.getByRole("heading", { name: "Memory by stage" })).toBeVisible();
  await expect(page).toHaveURL(/\/plans\/dense\/memory$/);
});

test("what is illegal is said beside its control, and nothing typed is lost", async ({ page }) => {
  await page.goto("/plans/dense/what-if");
  await expect(estimate(page)).toContainText("as the plan");
  await box(page, "Tensor parallel").fill("3");
  await expect(estimate(page)).toContainText("Not a legal strategy");
  await expect(box(page, "Tensor parallel")).toHaveAttribute("aria-invalid", "true");
  await expect(box(page, "Tensor parallel")).toHaveAccessibleDescription(/does not divide the 64 devices/);
  await expect(box(page, "Pipeline stages")).not.toHaveAttribute("aria-invalid");
  await expect(page).toHaveURL(/tp=3/);
  await page.reload();
  await expect(box(page, "Tensor parallel")).toHaveValue("3");
  await box(page, "Tensor parallel").fill("8");
  await box(page, "Micro-batch").fill("3");
  await expect(box(page, "Micro-batch")).toHaveAccessibleDescription(/does not divide the global batch/);
  await box(page, "Tensor parallel").fill("3");
  await box(page, "Devices").fill("60");
  await expect(box(page, "Devices")).toHaveAccessibleDescription(/use devices 56 or 64/);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Reset to the plan" }).click();
  await expect(estimate(page)).toContainText("as the plan");
});

test("what follows from a choice is shown at its own control", async ({ page }) => {
  await page.goto("/plans/dense/what-if?pp=1");
  await expect(box(page, "Chunks a stage")).toHaveValue("1");
  await expect(page.getByRole("combobox", { name: "Schedule" })).toHaveValue("1f1b");
});

test("a strategy that does not fit says what is missing", async ({ page }) => {
  await page.goto("/plans/dense/what-if?recompute=none&tp=1&pp=1");
  await expect(estimate(page)).toContainText(/Does not fit\. The worst device lacks [\d.,]+\sGiB/);
});

test("every choice is one that the API knows", async ({ page, request }) => {
  const plan = await (await request.get("/v1/plans/dense")).json();
  const { model, cluster, workload } = plan.problem;
  await page.goto("/plans/dense/what-if");
  for (const [label, field] of [
    ["Schedule", "schedule"],
    ["Recompute", "recompute"],
    ["ZeRO stage", "zero_stage"],
  ] as const) {
    const options = page.getByRole("combobox", { name: label }).locator("option");
    for (const option of await options.all()) {
      const strategy = { tp: 8, pp: 2, [field]: (await option.getAttribute("value")) ?? "" };
      const answer = await request.post("/v1/estimates", { data: { model, cluster, workload, strategy } });
      if (!answer.ok()) expect(await answer.text()).not.toContain(`/strategy/${field}`);
    }
  }
});

test("what was changed is solved as pins, on a changed machine too", async ({ page, request }) => {
  await page.goto("/plans/small/what-if?micro_batch_size=1&memory_capacity=1.5");
  await page.getByRole("button", { name: "Solve with 1 pin" }).click();
  const open = page.getByRole("link", { name: "Open the new plan" });
  await expect(open).toBeVisible();
  const href = (await open.getAttribute("href")) ?? "";
  const [own, found] = await Promise.all(
    ["small", href.split("/").at(-1)].map(async (each) => (await request.get(`/v1/plans/${each}`)).json()),
  );
  expect(found.strategy.micro_batch_size).toBe(1);
  const memory = (plan: typeof own) => plan.problem.cluster.pools[0].device.memory_bytes;
  expect(memory(found)).toBe(Math.trunc(memory(own) * 1.5));
  await expect(page.getByRole("link", { name: "Compare the two" })).toHaveAttribute(
    "href",
    `/diff/${own.plan_id}/${found.plan_id}`,
  );
  await page.reload();
  await expect(open).toBeVisible();
});

test("pins that nothing fits are an answer", async ({ page }) => {
  await page.goto("/plans/dense/what-if?tp=1&pp=1&recompute=none&zero_stage=0");
  await page.getByRole("button", { name: "Solve with 4 pins" }).click();
  await expect(page.getByText("An answer, not an error: no plan fits")).toBeVisible();
});

test("a link opens the same numbers in another browser", async ({ page, browser }) => {
  await page.goto("/plans/moe/what-if?micro_batch_size=1&nic_bandwidth=0.5");
  await expect(estimate(page)).toContainText("against the plan");
  const text = await estimate(page).textContent();
  const other = await (await browser.newContext({ baseURL: new URL(page.url()).origin })).newPage();
  await other.goto(page.url());
  await expect(estimate(other)).toHaveText(text ?? "");
  await expect(slider(other, "NIC bandwidth")).toHaveValue("0.5");
  await expect(slider(other, "Expert parallel")).toBeVisible();
  await other.context().close();
});

test("a calibrated plan is asked again with its calibration, and says so", async ({ page, request }) => {
  const calibration = {
    framework: "our fork",
    framework_version: "1.2",
    device: "h100-sxm5-80gb",
    factors: { compute: 1.5 },
    software: "0",
  };
  const workload = { global_batch_size: 32, sequence_length: 2048 };
  const asked = await request.post("/v1/plans", {
    data: { model: "llama-3.1-8b", cluster: "dgx-h100", devices: 8, workload, calibration },
  });
  const plan = await asked.json();
  await page.goto(`/plans/${plan.plan_id}/what-if`);
  await expect(page.getByText(/calibrated to our fork 1\.2/)).toBeVisible();
  await expect(estimate(page)).toContainText(seconds(plan.step_time_s));
  await expect(estimate(page)).toContainText("as the plan");
  await picture(page, "what-if-calibrated");
  await box(page, "Micro-batch").fill("2");
  await expect(estimate(page)).toContainText("against the plan");
  await page.getByRole("button", { name: "Solve with 1 pin" }).click();
  await expect(page).toHaveURL(/solved=[0-9a-f]{64}/);
  const solved = new URL(page.url()).searchParams.get("solved");
  const other = await (await request.get(`/v1/plans/${solved}`)).json();
  expect(other.problem.calibration).toEqual(plan.problem.calibration);
  // Its id is not kept on this service: the form says so beside the field.
  await page.goto(`/?calibration=${plan.problem.calibration.calibration_id}`);
  await expect(page.getByLabel("Calibration")).toHaveAccessibleDescription(/there is no calibration/);
});

test("a plan that is not there cannot be changed", async ({ page }) => {
  await page.goto("/plans/no-such-label/what-if");
  await expect(page.getByRole("alert")).toContainText("no-such-label");
});

for (const { theme, width } of looksAt("what-if", [...WIDTHS_PX, 1280])) {
  test(`what-if at ${width} px, ${theme}`, async ({ page }) => {
    await inTheme(page, theme);
    await page.setViewportSize({ width, height: 900 });
    for (const [name, search] of [
      ["changed", "tp=8&nic_bandwidth=0.5"],
      ["illegal", "tp=3"],
      ["unfit", "tp=1&pp=1"],
    ] as const) {
      await page.goto(`/plans/dense/what-if?${search}`);
      await expect(estimate(page)).toContainText(/against the plan|Not a legal/);
      await expectNoSidewaysScroll(page);
      await expectAccessible(page);
      await picture(page, `what-if-${name}-${width}-${theme}`);
    }
  });
}
