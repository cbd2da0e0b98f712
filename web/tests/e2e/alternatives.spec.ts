import { looksAt } from "./looks";
import { expect, expectAccessible, expectNoSidewaysScroll, inTheme, picture, test } from "./screen";

const TAB = "/plans/dense/alternatives";

test("every neighbour of the API and every runner-up is a row, with the API's own reason", async ({
  page,
  request,
}) => {
  const plan = await (await request.get("/v1/plans/dense")).json();
  const why = await (await request.get("/v1/plans/dense/explanation")).json();
  await page.goto(TAB);
  const table = page.getByRole("table", { name: /^Alternatives/ });
  await expect(table.getByRole("row")).toHaveCount(2 + plan.alternatives.length + why.neighbours.length);
  const large = why.neighbours.find((each: { outcome: string }) => each.outcome === "does_not_fit");
  const name = large.move.replace("->", "\u2192");
  await expect(
    table.getByRole("row").filter({ has: page.getByRole("button", { name, exact: true }) }),
  ).toContainText(
    `stage ${large.over_limit_stage} misses ${(large.over_limit_bytes / 2 ** 30).toFixed(1)}\u00a0GiB`,
  );
  const number = why.neighbours.filter((each: { outcome: string }) => each.outcome === "does_not_fit").length;
  await expect(page.getByRole("img", { name: new RegExp(`${number} of which do not fit`) })).toBeVisible();
});

test("keys walk over the rows and pin; a reload and a link show the same", async ({ page, browser }) => {
  await page.goto(TAB);
  await expect(page.getByRole("table", { name: /^Alternatives/ })).toBeVisible();
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("p");
  const chosen = page.locator('button[aria-pressed="true"]').first();
  await expect(chosen).toBeVisible();
  const name = await page.getByRole("table").locator('button[aria-pressed="true"]').textContent();
  await expect(page).toHaveURL(/choice=.*pinned=|pinned=.*choice=/);
  await expect(page.getByRole("checkbox", { name: `Pin ${name}` })).toBeChecked();
  const other = await (await browser.newContext()).newPage();
  await other.goto(page.url());
  await expect(other.getByRole("heading", { name: String(name), exact: true })).toBeVisible();
  await expect(other.getByRole("checkbox", { name: `Pin ${name}` })).toBeChecked();
  await other.context().close();
});

test("a mark and its row are chosen together", async ({ page }) => {
  await page.goto(`${TAB}?choice=tp%3D8`);
  await expect(page.getByRole("heading", { name: "tp 4 \u2192 8" })).toBeVisible();
  const ring = page.locator("svg[role=img] circle").last();
  await ring.scrollIntoViewIfNeeded();
  const box = await ring.boundingBox();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("heading", { name: "tp 4 \u2192 8" })).toBeHidden();
  if (!box) throw new Error("the ring has no place");
  await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
  await expect(page.getByRole("button", { name: "tp 4 \u2192 8", exact: true })).toHaveAttribute(
    "aria-pressed",
    "true",
  );
});

test("columns sort, and the order is in the address", async ({ page }) => {
  await page.goto(TAB);
  await page.getByRole("button", { name: "Peak memory" }).click();
  await expect(page).toHaveURL(/sort=memory/);
  await expect(page.getByRole("columnheader", { name: /Peak memory/ })).toHaveAttribute(
    "aria-sort",
    "ascending",
  );
  await page.getByRole("button", { name: /Peak memory/ }).click();
  await expect(page.getByRole("columnheader", { name: /Peak memory/ })).toHaveAttribute(
    "aria-sort",
    "descending",
  );
  const memory = await page
    .getByRole("columnheader")
    .evaluateAll((heads) => heads.findIndex((each) => each.textContent?.startsWith("Peak memory")));
  const cells = await page.locator(`tbody tr > :nth-child(${memory + 1})`).allTextContents();
  const known = cells.map(Number.parseFloat).filter(Number.isFinite);
  expect(known.length).toBeGreaterThan(2);
  expect(known).toEqual([...known].sort((a, b) => b - a));
  expect(known.at(0)).toBeGreaterThan(known.at(-1) ?? 0);
});

test("two pinned choices are solved and compared; back comes back", async ({ page }) => {
  await page.goto(`${TAB}?pinned=["plan","tp=8"]`);
  await expect(page.getByRole("button", { name: "Compare the two" })).toBeEnabled();
  await page.keyboard.press("d");
  await expect(page).toHaveURL(/\/diff\/[0-9a-f]{64}\/[0-9a-f]{64}$/);
  await expect(page.getByRole("rowheader", { name: "tp", exact: true })).toBeVisible();
  await page.goBack();
  await expect(page.getByRole("button", { name: "Compare the two" })).toBeVisible();
});

test("why not mine? answers in the API's sentence, and keeps what was typed", async ({ page, request }) => {
  await page.goto(TAB);
  await page.getByLabel("Your configuration").fill("tp=8, pp=2");
  await page.getByRole("button", { name: "Ask" }).click();
  await expect(page).toHaveURL(/whyNot=tp/);
  const answer = await (await request.get("/v1/plans/dense/explanation?why_not=tp=8,pp=2")).json();
  await expect(page.getByText(answer.sentence)).toBeVisible();
  await page.reload();
  await expect(page.getByText(answer.sentence)).toBeVisible();
  await expect(page.getByLabel("Your configuration")).toHaveValue("tp=8, pp=2");
  await page.getByRole("button", { name: "Keep it as a plan" }).click();
  await page.getByRole("link", { name: "Compare with this plan" }).click();
  await expect(page).toHaveURL(/\/diff\//);
});

test("why not mine? reads a Megatron-LM script, and says what is another question", async ({ page }) => {
  await page.goto(TAB);
  const script = [
    "torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py \\",
    "  --tensor-model-parallel-size 2 --pipeline-model-parallel-size 8 \\",
    "  --micro-batch-size 1 --global-batch-size 256 --sequence-parallel --bf16 \\",
    "  --num-layers 80 --hidden-size 8192 --num-attention-heads 64 --seq-length 8192 \\",
    "  --max-position-embeddings 8192 --vocab-size 128256 --tokenizer-type NullTokenizer",
  ].join("\n");
  await page.getByLabel("Your configuration").fill(script);
  await page.getByLabel("Your configuration").press("Control+Enter");
  await expect(page.getByText(/Read as a Megatron-LM script/)).toBeVisible();
  await expect(page.getByText("global_batch_size: the script has 256, this plan 512")).toBeVisible();
  // The script's run itself, of which nothing is searched.
  await expect(page.getByText(/^Your run takes [\d.]+ s a step, [\d.]+% slower than the plan/)).toBeVisible();
  await expect(page.getByText(/used, \d+ without influence on the plan, 0 not modelled/)).toBeVisible();
});

test("why not mine? says what cannot be, and what is no configuration stands beside the field", async ({
  page,
}) => {
  await page.goto(`${TAB}?whyNot=tp%3D3`);
  await expect(page.getByText(/^No plan has tp=3: .*does not divide the 64 devices/)).toBeVisible();
  await expect(page.getByText("drop the pin on tp")).toBeVisible();
  await page.getByLabel("Your configuration").fill("tpp=8\nzero=9");
  await page.getByRole("button", { name: "Ask" }).click();
  await expect(page.getByText("unknown strategy field 'tpp'")).toBeVisible();
  await expect(page.getByText("zero_stage = 9 is out of range")).toBeVisible();
  await expect(page.getByLabel("Your configuration")).toHaveAttribute("aria-invalid", "true");
  await expect(page.getByText(/tpp/).last()).toBeVisible();
});

for (const { theme, width } of looksAt("alternatives")) {
  test(`alternatives at ${width} px, ${theme}`, async ({ page }) => {
    await inTheme(page, theme);
    await page.setViewportSize({ width, height: 900 });
    await page.goto(`${TAB}?choice=pp%3D8&pinned=["plan"]&whyNot=tp%3D8`);
    await expect(page.getByText(/^The best plan with tp=8/)).toBeVisible();
    await expect(page.getByRole("img", { name: /do not fit/ })).toBeVisible();
    await expectNoSidewaysScroll(page);
    await expectAccessible(page);
    await picture(page, `alternatives-${width}-${theme}`);
  });
}
