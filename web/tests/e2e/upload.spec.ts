import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import type { Page } from "@playwright/test";
import { looksAt } from "./looks";
import { expect, expectAccessible, expectNoSidewaysScroll, inTheme, picture, test } from "./screen";
import { startServer } from "./server";

const SAMPLES = fileURLToPath(new URL("../../../tests/samples/", import.meta.url));
const SLURM = `${SAMPLES}topology/topograph_expected_slurm_tree_topology.conf`;
const TOPO_M = `${SAMPLES}topo/mlperf_v5.0_google_h200_topo_m_tabs_ansi.txt`;
const ALL_REDUCE = `${SAMPLES}nccl-tests/aws_p5_batch_allreduce_mpirun_tagged.txt`;
const WIDTHS_PX = [390, 1280];
const NEW_PLAN = "/?model=llama-3.1-8b&devices=8&batch=64&seq=4096";
const IMPORT = "/clusters?show=profiles&logs=true";

interface Given {
  readonly name: string;
  readonly content: string;
}

const sample = (path: string): Given => ({ name: basename(path), content: readFileSync(path, "utf-8") });
/** Another run of the same benchmark: what is stored already would be told as that. */
const ownLog = (name: string): Given => ({
  name,
  content: `${readFileSync(ALL_REDUCE, "utf-8")}\n# ${Date.now()} ${Math.random()}\n`,
});

async function drop(page: Page, ...files: readonly Given[]): Promise<void> {
  const dataTransfer = await page.evaluateHandle((given) => {
    const held = new DataTransfer();
    for (const { name, content } of given) held.items.add(new File([content], name, { lastModified: 1 }));
    return held;
  }, files);
  await page.dispatchEvent("main", "drop", { dataTransfer });
}

async function choose(page: Page, button: string, ...files: readonly (string | Given)[]): Promise<void> {
  const chooser = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: button }).click();
  const given = files.map((each) => (typeof each === "string" ? sample(each) : each));
  await (await chooser).setFiles(
    given.map(({ name, content }) => ({ name, mimeType: "text/plain", buffer: Buffer.from(content) })),
  );
}

const topology = (page: Page) => page.getByRole("form", { name: "A cluster from files" });
const complete = (page: Page) => topology(page).getByRole("button", { name: "Complete the cluster" }).click();

test("topology files become a cluster, and the cluster a plan", async ({ page }) => {
  await page.goto(NEW_PLAN);
  await choose(page, "Open cluster document or topology", SLURM, TOPO_M);
  await expect(page.getByRole("heading", { name: "A cluster from files" })).toBeFocused();
  await expect(topology(page).getByLabel("Base")).toHaveValue("dgx-h100");
  await topology(page).getByLabel("Base").selectOption("dgx-h200");
  await complete(page);
  const name = `${basename(SLURM)} and 1 more`;
  await expect(page.getByLabel("Cluster document", { exact: true })).toHaveText(name);
  await expect(topology(page)).toBeHidden();
  await expect(page.getByRole("group", { name: "Cluster", exact: true })).toBeFocused();
  await expect(page.getByLabel("Nodes", { exact: true })).toHaveValue("96");
  await page.getByText(/^Where each value came from/).click();
  await expect(page.getByText("scale_up.bandwidth_bytes_per_s: 450 GB/s, from the topology")).toBeVisible();
  await page.getByLabel("Nodes", { exact: true }).fill("4");
  await page.reload();
  await expect(page.getByLabel("Cluster document", { exact: true })).toHaveText(name);
  await expect(page.getByLabel("Nodes", { exact: true })).toHaveValue("4");
  await page.getByText(/^Where each value came from/).click();
  await expect(page.getByText("num_nodes: 96, from the topology", { exact: true })).toBeVisible();
  await expect(page.getByText(/parameters on 8 devices/)).toBeVisible();
  await page.getByRole("button", { name: "Plan", exact: true }).click();
  await expect(page).toHaveURL(/\/plans\/[0-9a-f]{64}$/);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(/llama-3\.1-8b on 8/);
});

test("files that are dropped together are told apart", async ({ page }) => {
  await page.goto("/?devices=8&batch=64&seq=2048");
  await expect(page.getByRole("heading", { name: "New plan" })).toBeVisible();
  const config = { model_type: "llama", hidden_size: 1024, num_hidden_layers: 8, num_attention_heads: 16 };
  await drop(page, { name: "config.json", content: JSON.stringify(config) }, sample(TOPO_M));
  await expect(page.getByLabel("Model file")).toHaveText("config.json");
  await drop(page, sample(SLURM), sample(TOPO_M), { name: "broken.json", content: "{" });
  await expect(page.getByRole("alert")).toContainText("broken.json is no JSON");
  await expect(topology(page).getByRole("listitem")).toHaveCount(2);
  await expect(topology(page).getByRole("listitem").first()).toContainText(basename(TOPO_M));
});

test("a refusal stands beside its file and field, and what was typed stays", async ({ page }) => {
  await page.goto(NEW_PLAN);
  await choose(page, "Open cluster document or topology", SLURM, { name: "notes.json", content: '{"a": 1}' });
  await topology(page).getByLabel("Base").selectOption("");
  await topology(page).getByLabel("Format").fill("slurm-topology-con");
  await complete(page);
  await expect(topology(page).getByText(/did you mean 'slurm-topology-conf'/)).toBeVisible();
  await expect(topology(page).getByLabel("Format")).toHaveAttribute("aria-invalid", "true");
  const notes = topology(page).getByRole("listitem").filter({ hasText: "notes.json" });
  await expect(notes).toContainText("no importer recognises this file");
  await expectAccessible(page);
  await picture(page, "topology-refused");
  await topology(page).getByRole("button", { name: "Leave out notes.json" }).click();
  await topology(page).getByLabel("Format").fill("");
  await complete(page);
  await expect(topology(page).getByLabel("Device")).toHaveAttribute("aria-invalid", "true");
  await expect(topology(page).getByText("no file names the device")).toBeVisible();
  await expect(topology(page).getByRole("listitem")).toHaveCount(1);
  await expect(page.getByLabel("Sequence length")).toHaveValue("4096");
  await topology(page).getByRole("button", { name: "Leave it" }).click();
  await expect(topology(page)).toBeHidden();
  await expect(page.getByLabel("Cluster", { exact: true })).toHaveValue("dgx-h100");
});

test("a base of another machine is a conflict that names the right one", async ({ page }) => {
  await page.goto(NEW_PLAN);
  await choose(page, "Open cluster document or topology", `${SAMPLES}nccl-xml/aws_p4de-24xl-topo.xml`);
  await complete(page);
  await expect(topology(page).getByLabel("Base")).toHaveAttribute("aria-invalid", "true");
  await expect(topology(page).getByText(/choose a base of a100-sxm4-80gb/)).toBeVisible();
});

test("a cluster is completed with keys alone", async ({ page }) => {
  await page.goto(NEW_PLAN);
  await expect(page.getByRole("heading", { name: "New plan" })).toBeVisible();
  await drop(page, sample(TOPO_M));
  await expect(page.getByRole("heading", { name: "A cluster from files" })).toBeFocused();
  const base = topology(page).getByLabel("Base");
  await expect(base).toContainText("dgx-h200");
  for (const field of ["Leave out", "Base"]) {
    await page.keyboard.press("Tab");
    const at = field === "Base" ? base : topology(page).getByRole("button", { name: /^Leave out/ });
    await expect(at).toBeFocused();
  }
  await page.keyboard.type("dgx-h200");
  await expect(base).toHaveValue("dgx-h200");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await expect(topology(page).getByLabel("Format")).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(page.getByLabel("Cluster document", { exact: true })).toHaveText(basename(TOPO_M));
  await expect(page).toHaveURL(/clusterFile=/);
});

test("logs are looked at, stored, and seen at their device", async ({ page }) => {
  await page.goto("/clusters?show=profiles");
  await page.getByRole("button", { name: "Import logs" }).click();
  await expect(page).toHaveURL(/logs=true/);
  await choose(page, "Choose files", ownLog("all_reduce.txt"), TOPO_M);
  await expect(page.getByRole("button", { name: "Store" })).toBeDisabled();
  await page.getByRole("button", { name: "Look first" }).click();
  const looked = page.getByRole("table", { name: /nothing is stored yet/ });
  await expect(looked.getByRole("row").filter({ hasText: "all_reduce.txt" })).toContainText("64 collectives");
  await expect(page.getByText(/the device is not known: no plan uses it until it is named$/)).toBeVisible();
  await page.getByLabel("Device that was measured").selectOption("gh200-96gb");
  await expect(looked).toBeHidden();
  await expect(page).toHaveURL(/measured=gh200-96gb/);
  await page.getByRole("button", { name: "Look first" }).click();
  await expect(looked.getByRole("row").filter({ hasText: "all_reduce.txt" })).toContainText("gh200-96gb");
  await page.getByRole("button", { name: "Store" }).click();
  const stored = page.getByRole("table", { name: "What became of the files" });
  await expect(stored.getByRole("row").filter({ hasText: "all_reduce.txt" })).toContainText("stored");
  await expect(page.getByText(/lean on profile/)).toBeVisible();
  await page.getByRole("link", { name: "gh200-96gb" }).click();
  await expect(page).toHaveURL(/device=gh200-96gb/);
  await expect(page.getByRole("img", { name: /curves? of / })).toBeVisible();
});

test("a device without measurements leads to the form", async ({ page }) => {
  await page.goto("/clusters?show=devices&device=mi300x");
  await page.getByRole("link", { name: "Import logs of it" }).click();
  await expect(page.getByLabel("Device that was measured")).toHaveValue("mi300x");
});

test("a refused file keeps everything out, unless told to go on", async ({ page }) => {
  await page.goto(`${IMPORT}&facts=operation`);
  await expect(page.getByText("operation is not NAME=VALUE")).toBeVisible();
  await expect(page.getByRole("button", { name: "Look first" })).toBeDisabled();
  await page.getByLabel("Other facts").fill("operation=all_reduce");
  await drop(page, ownLog("good.txt"), { name: "notes.txt", content: "bread, butter\n" });
  await page.getByRole("button", { name: "Look first" }).click();
  await expect(page.getByText(/^1 of 2 files cannot be used/)).toBeVisible();
  const table = page.getByRole("table", { name: /nothing is stored yet/ });
  await expect(table.getByRole("row").filter({ hasText: "notes.txt" })).toContainText("not recognised");
  const chosen = page.getByRole("listitem").filter({ has: page.getByRole("button", { name: /^Leave out/ }) });
  await expect(chosen.filter({ hasText: "notes.txt" })).toContainText("no importer recognises this file");
  await expect(page.getByRole("button", { name: "Store" })).toBeDisabled();
  await page.getByLabel(/^Store good files/).check();
  await page.getByRole("button", { name: "Look first" }).click();
  await expect(page.getByText(/the others are stored\.$/)).toBeVisible();
  await page.reload();
  await expect(page.getByLabel("Other facts")).toHaveValue("operation=all_reduce");
  await expect(page.getByLabel(/^Store good files/)).toBeChecked();
});

test("without the role the refusal says which one is needed", async ({ page }) => {
  const own = await startServer("--keys");
  try {
    await page.goto(`${own.address}${IMPORT}`);
    await page.getByLabel("API key").fill(own.key);
    await page.keyboard.press("Enter");
    await expect(page.getByRole("heading", { name: "Import logs" })).toBeVisible();
    await drop(page, ownLog("good.txt"));
    await page.getByRole("button", { name: "Look first" }).click();
    await expect(page.getByRole("alert")).toContainText("it needs the scope admin");
    await expect(page.getByRole("listitem").filter({ hasText: "good.txt" })).toBeVisible();
  } finally {
    await own.stop();
  }
});

for (const { theme, width } of looksAt("upload", WIDTHS_PX)) {
  test(`uploads at ${width} px, ${theme}`, async ({ page }) => {
    await inTheme(page, theme);
    await page.setViewportSize({ width, height: 900 });
    await page.goto(NEW_PLAN);
    await choose(page, "Open cluster document or topology", SLURM, TOPO_M);
    await topology(page).getByLabel("Base").selectOption("dgx-h200");
    await expectNoSidewaysScroll(page);
    await expectAccessible(page);
    await picture(page, `topology-${width}-${theme}`);
    await complete(page);
    await page.getByText(/^Where each value came from/).click();
    await expectNoSidewaysScroll(page);
    await expectAccessible(page);
    await picture(page, `topology-completed-${width}-${theme}`);
    await page.goto(`${IMPORT}&measured=gh200-96gb`);
    await expect(page.getByRole("heading", { name: "Import logs" })).toBeVisible();
    await drop(page, sample(ALL_REDUCE), sample(SLURM), { name: "notes.txt", content: "bread" });
    await page.getByRole("button", { name: "Look first" }).click();
    await expect(page.getByRole("table", { name: /nothing is stored yet/ })).toBeVisible();
    await expectNoSidewaysScroll(page);
    await expectAccessible(page);
    await picture(page, `import-${width}-${theme}`);
  });
}
