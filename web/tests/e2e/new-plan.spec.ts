import type { Page } from "@playwright/test";
import { looksAt } from "./looks";
import {
  expect,
  expectAccessible,
  expectNoSidewaysScroll,
  inTheme,
  picture,
  slowScript,
  test,
} from "./screen";

test("a question is planned, and becomes a plan", async ({ page }) => {
  await page.goto("/?model=llama-3.1-8b&devices=8&batch=64&seq=4096");
  await expect(page.getByText(/parameters on [\d,]+ devices/)).toBeVisible();
  await page.getByRole("button", { name: "Plan", exact: true }).click();
  await expect(page).toHaveURL(/\/plans\/[0-9a-f]{64}$/);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(/llama-3\.1-8b on 8/);
});

test("a question is asked with keys alone", async ({ page }) => {
  await page.goto("/?devices=8&batch=64&seq=4096");
  const model = page.getByLabel("Model", { exact: true });
  await expect(model).toContainText("mixtral-8x7b");
  for (let presses = 0; presses < 20; presses++) {
    if (await model.evaluate((element) => element === document.activeElement)) break;
    await page.keyboard.press("Tab");
  }
  await expect(model).toBeFocused();
  await page.keyboard.type("llama-3.1-8b");
  await expect(model).toHaveValue("llama-3.1-8b");
  const sequence = page.getByLabel("Sequence length");
  for (let presses = 0; presses < 20; presses++) {
    if (await sequence.evaluate((element) => element === document.activeElement)) break;
    await page.keyboard.press("Tab");
  }
  await page.keyboard.type("2048");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/\/plans\/[0-9a-f]{64}$/);
  await expect(page.getByText(/64 samples of 2,048 tokens/)).toBeVisible();
});

test("an answer that comes before the address is written is not left again", async ({ page, request }) => {
  const known = { model: "llama-3.1-8b", cluster: "dgx-h100", devices: 8 };
  const asked = { ...known, workload: { global_batch_size: 48, sequence_length: 2048 } };
  expect((await request.post("/v1/plans", { data: asked })).ok()).toBe(true);
  await page.goto("/?model=llama-3.1-8b&devices=8&batch=4&seq=2048&profile=none");
  await expect(page.getByText(/parameters on [\d,]+ devices/)).toBeVisible();
  // The plan's screen is on its way while the draft would be written into the address.
  await slowScript(page, "plan", 1000);
  await page.getByLabel("Global batch size").fill("48");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/\/plans\/[0-9a-f]{64}$/);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(/llama-3\.1-8b on 8/);
});

test("what is wrong stands beside its field, with what repairs it", async ({ page }) => {
  await page.goto("/");
  await page.getByLabel("Devices").fill("63");
  await expect(page.getByLabel("Devices")).toHaveAttribute("aria-invalid", "true");
  await expect(page.getByText(/use devices 56 or 64/)).toBeVisible();
  const plan = page.getByRole("button", { name: "Plan", exact: true });
  await expect(plan).toBeDisabled();
  await expect(plan).toHaveAccessibleDescription(/1 finding to repair first/);
  await page.getByLabel("Devices").fill("2");
  await expect(page.getByText("nothing fits")).toBeVisible();
  await page.getByLabel("Devices").fill("64");
  await expect(page.getByText(/no plan is faster than 5\d\.\d+\ss a step/)).toBeVisible();
  await expect(plan).toBeEnabled();
  await page.getByLabel("Sequence length").fill("many");
  await expect(page.getByLabel("Sequence length")).toHaveAttribute("aria-invalid", "true");
});

test("a question that no plan fits is answered with the reason", async ({ page, request }) => {
  const workload = { global_batch_size: 512, sequence_length: 4096 };
  const data = { model: "llama-3.1-405b", cluster: "dgx-a100-80g", devices: 8, workload };
  const refused = await (await request.post("/v1/plans", { data })).json();
  const [hint] = refused.errors.flatMap((each: { hint?: string }) => each.hint ?? []);
  expect(hint).toMatch(/^use \d+ devices$/);
  await page.goto("/?model=llama-3.1-405b&cluster=dgx-a100-80g&devices=8&batch=512&seq=4096");
  await page.getByRole("button", { name: "Plan", exact: true }).click();
  await expect(page.getByText("device memory rules every plan out")).toBeVisible();
  await expect(page.getByText(hint)).toBeVisible();
  await expectAccessible(page);
});

test("a back-end is chosen from those that the API lists, another beside it, or none for study", async ({
  page,
  request,
  baseURL,
}) => {
  const { items } = await (await request.get(`${baseURL}/v1/backends`)).json();
  await page.goto("/?model=llama-3.1-8b&devices=8&batch=64&seq=4096");
  const backend = page.getByLabel("Back-end", { exact: true });
  await expect(backend).toHaveValue("any");
  const releases = items.flatMap((each: { title: string; releases: string[] }) =>
    each.releases.map((release) => `${each.title} ${release}`),
  );
  const offered = backend.locator("option");
  await expect(offered).toHaveCount(releases.length + 2);
  expect((await offered.allTextContents()).slice(1, -1).sort()).toEqual([...releases].sort());
  await backend.selectOption({ label: "torchtitan 0.2.2" });
  await page.getByLabel("Another back-end").selectOption({ label: "native PyTorch 2.13.0" });
  await expect(page).toHaveURL(/backend=torchtitan%3D%3D0\.2\.2%2Cnative(&|$)/);
  await expectAccessible(page);
  await page.getByRole("button", { name: "Plan", exact: true }).click();
  await expect(page).toHaveURL(/\/plans\/[0-9a-f]{64}$/);
  const rows = page.getByRole("table", { name: /fastest plan of each back-end/ }).getByRole("rowheader");
  await expect(rows).toHaveCount(2);
  await expect(rows.filter({ hasText: "torchtitan 0.2.2" })).toHaveCount(1);
  await page.goBack();
  await page.getByRole("button", { name: "Leave out native PyTorch 2.13.0" }).click();
  await expect(page).toHaveURL(/backend=torchtitan%3D%3D0\.2\.2(&|$)/);
  await backend.selectOption({ label: "Unrestricted, for study" });
  await expect(page).toHaveURL(/backend=unrestricted/);
  await expect(page.getByLabel("Another back-end")).toHaveCount(0);
});

test("an address of an earlier release names the same back-end", async ({ page }) => {
  await page.goto("/?target=deepspeed&devices=8");
  await expect(page.getByLabel("Back-end", { exact: true })).toHaveValue("deepspeed");
  await expect(page).toHaveURL(/^(?!.*target=).*devices=8/);
});

test("nothing typed is lost: address, reload, other screens", async ({ page }) => {
  await page.goto("/");
  await page.getByLabel("Pin").fill("tp=8, pp=");
  await page.getByLabel("Devices").fill("1x8");
  await expect(page).toHaveURL(/pins=tp%3D8/);
  await expect(page).toHaveURL(/devices=1x8/);
  await page.reload();
  await expect(page.getByLabel("Pin")).toHaveValue("tp=8, pp=");
  await page.goto("/plans");
  await page.getByRole("link", { name: "New plan" }).click();
  await expect(page.getByLabel("Devices")).toHaveValue("1x8");
});

const CONFIG = {
  ...{ architectures: ["LlamaForCausalLM"], model_type: "llama", hidden_size: 1024, intermediate_size: 2816 },
  ...{ num_hidden_layers: 8, num_attention_heads: 16, num_key_value_heads: 16, vocab_size: 32000 },
  ...{ max_position_embeddings: 4096, rms_norm_eps: 1e-5, hidden_act: "silu", tie_word_embeddings: false },
};

async function drop(page: Page, name: string, text: string): Promise<void> {
  // The screen's code comes after the page; before it, nobody takes the file.
  await expect(page.getByRole("heading", { name: "New plan" })).toBeVisible();
  const dataTransfer = await page.evaluateHandle(
    ([fileName, content]) => {
      const held = new DataTransfer();
      held.items.add(new File([content ?? ""], fileName ?? ""));
      return held;
    },
    [name, text],
  );
  await page.dispatchEvent("main", "drop", { dataTransfer });
}

test("typing in a page that is scrolled leaves it there", async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 500 });
  await page.goto("/");
  // Facts of model and cluster come with their lists, above the field: until then the page becomes longer by itself.
  await expect(page.getByText("Longest sequence")).toBeVisible();
  await expect(page.getByText("Scale-up")).toBeVisible();
  const sequence = page.getByLabel("Sequence length");
  await sequence.click();
  await sequence.evaluate((element) => element.scrollIntoView({ block: "start" }));
  const place = () =>
    sequence.evaluate((element) => ({
      scrolled: window.scrollY,
      shownAt: element.getBoundingClientRect().top,
    }));
  const before = await place();
  expect(before.scrolled).toBeGreaterThan(0);
  await sequence.fill("2048");
  await expect(page).toHaveURL(/seq=2048/);
  expect(await place()).toEqual(before);
});

test("a reload right after a key press loses nothing", async ({ page }) => {
  await page.goto("/?devices=8&batch=64");
  await page.getByLabel("Pin").fill("tp=2");
  await page.evaluate(() => window.location.reload());
  await expect(page.getByLabel("Pin")).toHaveValue("tp=2");
  await expect(page).toHaveURL(/pins=tp%3D2/);
});

test("a dropped config.json is the model, also after a reload", async ({ page }) => {
  await page.goto("/?devices=8&batch=64&seq=2048");
  await drop(page, "config.json", JSON.stringify(CONFIG));
  await expect(page.getByLabel("Model file")).toHaveText("config.json");
  await expect(page.getByText(/parameters on 8 devices/)).toBeVisible();
  await page.reload();
  await expect(page.getByLabel("Model file")).toHaveText("config.json");
  await page.getByRole("button", { name: "Plan", exact: true }).click();
  await expect(page).toHaveURL(/\/plans\/[0-9a-f]{64}$/);
});

const SCRIPT = [
  'if [ -z "$TP" ]; then TP=2; fi',
  "torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py --num-layers 8 --hidden-size 1024 \\",
  "  --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 --bf16 --lr 1e-4 \\",
  "  --micro-batch-size 1 --global-batch-size 32 --tensor-model-parallel-size $TP --use-nccl-ub \\",
  "  --tokenizer-type HuggingFaceTokenizer --tokenizer-model $TOKENIZER",
].join("\n");

test("a dropped launch script is read, and asks for what its text does not say", async ({ page }) => {
  await page.goto("/?devices=64&batch=512");
  await drop(page, "train.sh", SCRIPT);
  const panel = page.getByRole("form", { name: "Launch script train.sh" });
  await expect(panel.getByLabel("Vocabulary size")).toHaveAttribute("aria-invalid", "true");
  await panel.getByLabel("Vocabulary size").fill("32000");
  await panel.getByLabel("Environment").fill("TP=4");
  await panel.getByRole("button", { name: "Read again" }).click();
  await expect(page.getByLabel("Model file")).toHaveText("train.sh");
  await expect(page.getByLabel("Global batch size")).toHaveValue("32");
  await expect(page.getByLabel("Devices")).toHaveValue("8");
  await expect(panel.getByText("not modelled --use-nccl-ub")).toBeVisible();
  await expect(panel.getByText(/tp=4/)).toBeVisible();
  await expectAccessible(page);
  await panel.getByRole("button", { name: "Pin it" }).click();
  await expect(page.getByLabel("Pin", { exact: true })).toHaveValue(/tp=4/);
  await page.reload();
  await expect(panel.getByText("not modelled --use-nccl-ub")).toBeVisible();
  await page.getByLabel("Pin", { exact: true }).fill("");
  await page.getByRole("button", { name: "Plan", exact: true }).click();
  await expect(page).toHaveURL(/\/plans\/[0-9a-f]{64}$/);
});

test("a document with a mistake in it is refused with the reason", async ({ page }) => {
  await page.goto("/");
  await drop(page, "broken.json", "{");
  await expect(page.getByRole("alert")).toContainText("broken.json is no JSON");
  // The model that was chosen before is not planned in its place.
  const plan = page.getByRole("button", { name: "Plan", exact: true });
  await expect(plan).toBeDisabled();
  await page.getByRole("button", { name: "Go on without it" }).click();
  await expect(plan).toBeEnabled();
});

test("a link to a question with a file says that the file is missing here", async ({ page }) => {
  await page.goto("/?modelFile=theirs.json");
  await expect(page.getByText("theirs.json is not in this browser")).toBeVisible();
});

test("the figures of a cluster are changed, with units, and checked beside them", async ({ page }) => {
  await page.goto("/?model=llama-3.1-8b&devices=&batch=64&seq=4096");
  await page.getByRole("button", { name: "Change its figures" }).click();
  await page.getByLabel("Nodes", { exact: true }).fill("2");
  await page.getByLabel("NIC bandwidth, one way").fill("400 furlong");
  await expect(page.getByText(/the unit 'furlong', which is not known here/)).toBeVisible();
  await expect(page.getByLabel("NIC bandwidth, one way")).toHaveAttribute("aria-invalid", "true");
  await expectAccessible(page);
  await picture(page, "cluster-editor");
  await page.getByLabel("NIC bandwidth, one way").fill("100 Gbit/s");
  await expect(page.getByText(/parameters on 16 devices/)).toBeVisible();
  await page.getByText("The whole document").click();
  const text = page.getByLabel("Cluster document (JSON)");
  await expect(text).toHaveValue(/"nic_bandwidth_bytes_per_s": "100 Gbit\/s"/);
  await text.fill("{");
  await expect(page.getByText(/no JSON yet/)).toBeVisible();
  await page.getByRole("button", { name: "Use the catalogue" }).click();
  await expect(page.getByLabel("Cluster", { exact: true })).toHaveValue("dgx-h100");
});

for (const { theme, width } of looksAt("new-plan")) {
  test(`new plan at ${width} px, ${theme}`, async ({ page }) => {
    await inTheme(page, theme);
    await page.setViewportSize({ width, height: 900 });
    await page.goto("/?devices=63");
    await expect(page.getByText(/use devices 56 or 64/)).toBeVisible();
    await expectNoSidewaysScroll(page);
    await expectAccessible(page);
    await picture(page, `new-plan-${width}-${theme}`);
  });
}
