import type { Page } from "@playwright/test";
import { looksAt } from "./looks";
import { expect, expectAccessible, expectNoSidewaysScroll, inTheme, picture, THEMES, test } from "./screen";
import { chart, open, panel, search, stepOf } from "./timeline";

const plain = (text: string) => text.replaceAll("\u00a0", " ");

/** The colour of the rows at a part of the width and a pixel from the top. */
async function colourAt(page: Page, share: number, top: number): Promise<string> {
  return chart(page)
    .locator("canvas")
    .first()
    .evaluate(
      (canvas: HTMLCanvasElement, at) => {
        const ratio = canvas.width / canvas.clientWidth;
        const [x, y] = [Math.round(canvas.width * at.share), Math.round(at.top * ratio)];
        return [...(canvas.getContext("2d")?.getImageData(x, y, 1, 1).data ?? [])].slice(0, 3).join(",");
      },
      { share, top },
    );
}

async function token(page: Page, name: string): Promise<string> {
  return page.evaluate((wanted) => {
    const probe = document.body.appendChild(document.createElement("i"));
    probe.style.color = `var(${wanted})`;
    const found = getComputedStyle(probe).color.match(/\d+/g)?.slice(0, 3).join(",") ?? "";
    probe.remove();
    return found;
  }, name);
}

test("the rows say what the API says: idle time in all and of each rank", async ({ page, request }) => {
  const step = await stepOf(request, "pipelined");
  await open(page, "/plans/pipelined/timeline");
  const all = `They are idle for ${(step.bubble_fraction * 100).toFixed(1)} % of all device time`;
  const sentence = await page
    .getByRole("img", { name: /The pipeline of one step takes/ })
    .getAttribute("aria-label");
  expect(plain(sentence ?? "")).toContain(all);
  for (const [rank, idle_ns] of step.bubble_ns.entries()) {
    const share = `${((100 * idle_ns) / step.makespan_ns).toFixed(1)}\u00a0%`;
    const button = page.getByRole("list", { name: "Pipeline ranks" }).getByRole("button").nth(rank);
    await expect(button).toHaveAccessibleName(new RegExp(`^Rank ${rank}: idle for .*, ${share}$`));
  }
});

for (const theme of THEMES) {
  test(`what is painted is what runs, and what waits is hatched: ${theme}`, async ({ page, request }) => {
    await inTheme(page, theme);
    const { actions, makespan_ns } = await stepOf(request, "pipelined");
    // The first forward of rank 1 comes after a gap, in which the rank is idle.
    const first = actions.offsets[1] ?? 0;
    const [start, end] = [actions.start_ns[first] ?? 0, actions.end_ns[first] ?? 0];
    expect(start).toBeGreaterThan(0);
    const window = { from_ns: 0, to_ns: Math.min(makespan_ns, end + start) };
    await open(page, `/plans/pipelined/timeline?from_ns=${window.from_ns}&to_ns=${window.to_ns}`);
    const row_px = 48;
    const share = (start + (end - start) * 0.1) / window.to_ns;
    expect(await colourAt(page, share, row_px + 4)).toBe(await token(page, "--series-1"));
    expect(await colourAt(page, (start / window.to_ns) * 0.5, row_px + 4)).not.toBe(
      await token(page, "--series-1"),
    );
  });
}

test("a link opens the same view in another browser", async ({ page, browser, baseURL }) => {
  await open(page, "/plans/pipelined/timeline");
  await page.keyboard.press("w");
  await page.keyboard.press(".");
  await page.keyboard.press("c");
  await page.getByRole("button", { name: /^Highlight micro-batch/ }).click();
  await expect
    .poll(() => [...search(page).keys()].sort().join())
    .toBe("action,critical,from_ns,microbatch,to_ns");
  const other = await (await browser.newContext({ baseURL })).newPage();
  await open(other, page.url());
  for (const name of ["Beginning of the window", "End of the window"]) {
    const now = await page.getByRole("slider", { name }).getAttribute("aria-valuenow");
    await expect(other.getByRole("slider", { name })).toHaveAttribute("aria-valuenow", now ?? "");
  }
  await expect(panel(other)).toHaveText((await panel(page).textContent()) ?? "");
  const pixels = (each: Page) =>
    chart(each).evaluate((node) => [...node.querySelectorAll("canvas")].map((c) => c.toDataURL()));
  await page.mouse.move(0, 0);
  expect(await pixels(other)).toEqual(await pixels(page));
  await other.context().close();
});

test("a link that makes no sense opens the whole step", async ({ page }) => {
  await open(
    page,
    "/plans/pipelined/timeline?from_ns=9&to_ns=3&action=99999999&microbatch=-7&rank=500&critical=perhaps",
  );
  await expect(panel(page).getByText("No action selected")).toBeVisible();
  await expect(page.getByRole("slider", { name: "Beginning of the window" })).toHaveAttribute(
    "aria-valuenow",
    "0",
  );
  await expect(page.getByRole("button", { name: /^Rank 1:/ })).toHaveAttribute("aria-pressed", "true");
});

test("the trace for Perfetto is a file", async ({ page, request }) => {
  const step = await stepOf(request, "pipelined");
  await open(page, "/plans/pipelined/timeline");
  const coming = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download trace" }).click();
  const stream = await (await coming).createReadStream();
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(part as Buffer);
  const trace = JSON.parse(Buffer.concat(parts).toString()) as { traceEvents: { cat?: string }[] };
  expect(trace.traceEvents.filter((each) => each.cat === "compute")).toHaveLength(step.actions.kind.length);
});

test("Perfetto gets the trace from tab to tab", async ({ page, context, request }) => {
  // Perfetto's own page is not there without internet: this one keeps its side of the published handshake.
  await context.route("https://ui.perfetto.dev/**", (route) =>
    route.fulfill({
      contentType: "text/html",
      body: `<script>addEventListener("message", ({ data }) => {
        if (data === "PING") return opener.postMessage("PONG", "*");
        document.title = data.perfetto.title;
        document.body.textContent = new TextDecoder().decode(data.perfetto.buffer);
      })</script>`,
    }),
  );
  const step = await stepOf(request, "pipelined");
  await open(page, "/plans/pipelined/timeline");
  const opening = context.waitForEvent("page");
  await page.getByRole("button", { name: "Open in Perfetto" }).click();
  const perfetto = await opening;
  await expect(perfetto).toHaveTitle("pipelined-step");
  const trace = JSON.parse((await perfetto.locator("body").textContent()) ?? "") as {
    traceEvents: { cat?: string }[];
  };
  expect(trace.traceEvents.filter((each) => each.cat === "compute")).toHaveLength(step.actions.kind.length);
  await expect(page.getByRole("button", { name: "Open in Perfetto" })).toBeEnabled();
});

test("where Perfetto does not answer, the page says what else to do", async ({ page, context }) => {
  await context.route("https://ui.perfetto.dev/**", (route) => route.abort());
  await open(page, "/plans/pipelined/timeline");
  await page.getByRole("button", { name: "Open in Perfetto" }).click();
  await expect(page.getByRole("alert")).toContainText("Download the trace");
});

test("the data are tables: the ranks, and the actions in the window", async ({ page, request }) => {
  const step = await stepOf(request, "pipelined");
  await open(page, "/plans/pipelined/timeline?rank=1");
  await page.getByText("Show data").click();
  await expect(
    page.getByRole("table", { name: "Each rank over the whole step" }).getByRole("row"),
  ).toHaveCount(step.num_ranks + 1);
  const own = (step.actions.offsets[2] ?? 0) - (step.actions.offsets[1] ?? 0);
  await expect(page.getByRole("table", { name: /^Actions of rank 1/ }).getByRole("row")).toHaveCount(
    Math.min(200, own) + 1,
  );
});

test("one rank is no pipeline", async ({ page }) => {
  await open(page, "/plans/no-pipeline/timeline");
  await expect(page.getByRole("img", { name: /there is no pipeline and no bubble/ })).toBeVisible();
  await expectAccessible(page);
  await picture(page, "timeline-one-rank");
});

test("a plan that is not there is a problem with its reason", async ({ page }) => {
  await page.goto("/plans/no-such-label/timeline");
  await expect(page.getByRole("alert").first()).toContainText("no-such-label");
});

for (const { theme, width } of looksAt("timeline")) {
  test(`timeline at ${width} px, ${theme}`, async ({ page }) => {
    await inTheme(page, theme);
    await page.setViewportSize({ width, height: 900 });
    await open(page, "/plans/long/timeline?action=20000&microbatch=1000&critical=true");
    await expect(panel(page).getByRole("heading")).toContainText("of micro-batch");
    await expectNoSidewaysScroll(page);
    await expectAccessible(page);
    await picture(page, `timeline-${width}-${theme}`);
  });
}
