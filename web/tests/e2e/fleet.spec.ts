import { looksAt } from "./looks";
import { expect, expectAccessible, expectNoSidewaysScroll, inTheme, picture, test } from "./screen";

const POOL =
  '  - {name: a100, cluster: dgx-a100-80g, nodes: ["n[1-3]"], blocks: {left: [n1, n2], right: [n3]}}';
const ASKED =
  "model: llama-3.2-1b, workload: {global_batch_size: 16, sequence_length: 2048}, device_counts: [8, 16]," +
  " constraints: {backends: [megatron], pins: {tp: 1, pp: 1, cp: 1}}";

const fleetOf = (...names: string[]): string =>
  ["pools:", POOL, "jobs:", ...names.map((name) => `  - {name: ${name}, ${ASKED}}`), ""].join("\n");

test("a file is shared, what it says of nodes is the API's answer, and a lost node is shared again by keys alone", async ({
  page,
  request,
}) => {
  await page.goto("/");
  await expect(page.getByRole("heading", { name: "New plan" })).toBeVisible();
  await page.keyboard.press("g");
  await page.keyboard.press("f");
  await expect(page.getByRole("heading", { name: "Who gets which nodes?" })).toBeVisible();
  const file = page.getByLabel("Pools and jobs, as YAML or JSON");
  await page.getByRole("button", { name: "Use the example" }).click();
  await expect(file).toHaveValue(/name: pretrain/);
  await file.fill(fleetOf("alpha", "beta"));
  await file.press("Control+Enter");
  const jobs = page.getByRole("table", { name: "What each job gets" });
  await expect(jobs.getByRole("row")).toHaveCount(3);
  const id = new URL(page.url()).searchParams.get("answer");
  const answer = await (await request.get(`/v1/fleets/${id}`)).json();
  const drawn = page.getByRole("img", { name: /Nodes of pool a100/ });
  for (const job of answer.jobs) {
    await expect(jobs.getByRole("row", { name: job.name })).toContainText(job.plan_id.slice(0, 12));
    await expect(drawn.locator("title", { hasText: `${job.name}: ` }).first()).toContainText(job.nodes[0]);
  }
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Download alpha" }).click(),
  ]);
  expect(download.suggestedFilename()).toBe("alpha.zip");
  await page.getByLabel("Nodes that are gone").fill("n3");
  await page.getByLabel("Nodes that are gone").press("Enter");
  await expect(page).not.toHaveURL(new RegExp(`${id}`));
  await expect(page.getByText("2 jobs get 2 of 2 nodes.")).toBeVisible();
  await page.reload();
  await page.getByText("Fleet file", { exact: true }).click();
  await expect(file).toHaveValue(/lost_nodes: \["n3"\]/);
});

test("what is wrong with the file is said, and the file stays open", async ({ page }) => {
  await page.goto("/fleet");
  await page.getByLabel("Pools and jobs, as YAML or JSON").fill(fleetOf("one", "one"));
  await page.getByRole("button", { name: "Share the nodes" }).click();
  await expect(page.getByRole("alert")).toContainText("job one is named twice");
  await page.getByLabel("Pools and jobs, as YAML or JSON").fill("jobs: [");
  await page.getByRole("button", { name: "Share the nodes" }).click();
  await expect(page.getByRole("alert")).toContainText("body:");
});

for (const { theme, width } of looksAt("fleet")) {
  test(`fleet at ${width} px, ${theme}`, async ({ page }) => {
    await inTheme(page, theme);
    await page.setViewportSize({ width, height: 900 });
    await page.goto("/fleet");
    await page.getByLabel("Pools and jobs, as YAML or JSON").fill(fleetOf("one", "two", "three", "four"));
    await page.getByRole("button", { name: "Share the nodes" }).click();
    await expect(page.getByRole("heading", { name: "Who waits or moves" })).toBeVisible();
    await expectNoSidewaysScroll(page);
    await expectAccessible(page);
    await picture(page, `fleet-${width}-${theme}`);
  });
}
