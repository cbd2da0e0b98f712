import { expect, test } from "./screen";
import { chart, ms, open, panel, search, stepOf } from "./timeline";

test("keys zoom, pan, fit, walk, climb, highlight and clear", async ({ page, request }) => {
  const { actions, makespan_ns } = await stepOf(request, "pipelined");
  await open(page, "/plans/pipelined/timeline");
  await page.keyboard.press("w");
  await expect.poll(() => Number(search(page).get("from_ns"))).toBeGreaterThan(0);
  const before = Number(search(page).get("from_ns"));
  await page.keyboard.press("d");
  await expect.poll(() => Number(search(page).get("from_ns"))).toBeGreaterThan(before);
  await page.keyboard.press("0");
  await expect.poll(() => search(page).has("from_ns")).toBe(false);

  await page.keyboard.press(".");
  await page.keyboard.press(".");
  await expect(panel(page).getByText(ms(actions.start_ns[1]), { exact: true }).first()).toBeVisible();
  await expect(panel(page).getByText(ms(actions.end_ns[1]), { exact: true })).toBeVisible();
  await page.keyboard.press("j");
  await expect(page.getByRole("button", { name: /^Rank 1:/ })).toHaveAttribute("aria-pressed", "true");
  expect(Number(search(page).get("action"))).toBeGreaterThanOrEqual(actions.offsets[1] ?? 0);
  // A walk brings what it reaches into view.
  await expect
    .poll(() => Number(search(page).get("to_ns") ?? makespan_ns))
    .toBeLessThanOrEqual(makespan_ns * 1.1);

  await page.keyboard.press("]");
  await page.keyboard.press("]");
  await expect(page.getByRole("spinbutton", { name: /Micro-batch/ })).toHaveValue("1");
  await page.keyboard.press("c");
  await expect(page.getByRole("button", { name: "Critical path" })).toHaveAttribute("aria-pressed", "true");
  await page.keyboard.press("Escape");
  await expect(panel(page).getByText("No action selected")).toBeVisible();
  await page.keyboard.press("?");
  await expect(page.getByRole("dialog", { name: "Keys" })).toContainText("Highlight the next micro-batch");
});

test("arrows move the chart that has the focus, and only then", async ({ page }) => {
  await open(page, "/plans/pipelined/timeline");
  await page.keyboard.press("ArrowUp");
  await chart(page).focus();
  await expect(chart(page)).toBeFocused();
  expect(search(page).has("from_ns")).toBe(false);
  await page.keyboard.press("ArrowUp");
  await expect.poll(() => search(page).has("from_ns")).toBe(true);
  const from = search(page).get("from_ns");
  await page.keyboard.press("ArrowRight");
  await expect.poll(() => search(page).get("from_ns")).not.toBe(from);
});

test("wheel, drag and marking move the window", async ({ page }) => {
  await open(page, "/plans/pipelined/timeline");
  const box = await chart(page).boundingBox();
  if (!box) throw new Error("no chart");
  const [x, y] = [box.x + box.width / 2, box.y + 20];
  const length = () => Number(search(page).get("to_ns")) - Number(search(page).get("from_ns"));
  await page.mouse.move(x, y);
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -200);
  await page.keyboard.up("Control");
  await expect.poll(length).toBeGreaterThan(0);
  const [zoomed, from] = [length(), Number(search(page).get("from_ns"))];

  await page.mouse.down();
  await page.mouse.move(x - 200, y, { steps: 4 });
  await page.mouse.up();
  await expect.poll(() => Number(search(page).get("from_ns"))).toBeGreaterThan(from);
  expect(Math.abs(length() - zoomed)).toBeLessThanOrEqual(2);

  await page.keyboard.down("Shift");
  await page.mouse.down();
  await page.mouse.move(x + 100, y, { steps: 4 });
  await page.mouse.up();
  await page.keyboard.up("Shift");
  await expect.poll(() => Math.round((length() / zoomed) * 100)).toBe(Math.round((300 / box.width) * 100));
});

test("the minimap's edges are sliders", async ({ page }) => {
  await open(page, "/plans/pipelined/timeline");
  const end = page.getByRole("slider", { name: "End of the window" });
  const whole = Number(await end.getAttribute("aria-valuemax"));
  await end.focus();
  for (let press = 0; press < 3; press++) await page.keyboard.press("PageDown");
  // Each press is rounded to a nanosecond.
  const share = (ns: string | null) => (Number(ns) / whole).toFixed(6);
  await expect.poll(async () => share(await end.getAttribute("aria-valuenow"))).toBe("0.700000");
  await expect.poll(() => share(search(page).get("to_ns"))).toBe("0.700000");
});

test("the pointer finds an action, a press tells what it waited for", async ({ page, request }) => {
  const { actions, transfers } = await stepOf(request, "pipelined");
  const first = actions.offsets[1] ?? 0;
  const [start, end] = [actions.start_ns[first] ?? 0, actions.end_ns[first] ?? 0];
  const to_ns = end * 2;
  await open(page, `/plans/pipelined/timeline?from_ns=0&to_ns=${to_ns}`);
  const box = await chart(page).boundingBox();
  if (!box) throw new Error("no chart");
  const at = { x: (((start + end) / 2) * box.width) / to_ns, y: 48 + 15 };
  await chart(page).hover({ position: at });
  await expect(page.getByText("Forward of micro-batch 0, chunk 1", { exact: true })).toBeVisible();
  await chart(page).click({ position: at });
  await expect(panel(page).getByRole("heading")).toHaveText("Forward of micro-batch 0, chunk 1");
  expect(search(page).get("action")).toBe(String(first));
  const arrival =
    transfers.end_ns[transfers.to_rank.findIndex((rank, each) => rank === 1 && !transfers.gradient[each])];
  expect(arrival).toBe(start);
  await expect(panel(page).getByRole("paragraph").first()).toContainText(
    `on rank 0 came, sent until ${ms(arrival)}`,
  );

  await panel(page).getByRole("button", { name: "Forward of micro-batch 0, chunk 0, rank 0" }).click();
  await expect(panel(page).getByText(ms(actions.end_ns[0]), { exact: true })).toHaveCount(2);
  await page.goBack();
  await expect(panel(page).getByText("No action selected")).toBeVisible();
});
