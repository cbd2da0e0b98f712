import { secondsChange } from "../../src/lib/format";
import { looksAt } from "./looks";
import { expect, expectAccessible, expectNoSidewaysScroll, inTheme, picture, test } from "./screen";

test("only what differs is shown, as the API tells it", async ({ page, request }) => {
  const diff = await (await request.get("/v1/plans/dense/diff/dense-wide")).json();
  await page.goto("/diff/dense/dense-wide");
  await expect(page.getByText(diff.summary)).toBeVisible();
  const strategy = page.getByRole("table", { name: /^What differs in the strategy/ });
  await expect(strategy.getByRole("row")).toHaveCount(diff.strategy.length + 2 - 1);
  await expect(page.getByRole("rowheader", { name: "/cluster/pools/0/num_nodes" })).toBeVisible();
  // A picture for time and one for memory, where any part changes.
  const changed = [diff.breakdown_s, diff.peak_memory_bytes].filter((terms: { change: number }[]) =>
    terms.some((each) => each.change !== 0),
  );
  expect(changed.length).toBeGreaterThan(0);
  await expect(page.getByRole("img", { name: /From a to b: .* in all/ })).toHaveCount(changed.length);
  await expect(page.getByText(/The two answer different questions/)).toBeVisible();
});

test("x swaps the two, and back swaps again", async ({ page }) => {
  await page.goto("/diff/dense/dense-wide");
  await expect(page.getByRole("region", { name: "Plan b" })).toContainText("128");
  await page.keyboard.press("x");
  await expect(page).toHaveURL(/\/diff\/dense-wide\/dense$/);
  await expect(page.getByRole("region", { name: "Plan a" })).toContainText("128");
  await page.goBack();
  await expect(page).toHaveURL(/\/diff\/dense\/dense-wide$/);
});

test("a change that is one move is told alone", async ({ page, request }) => {
  const why = await (await request.get("/v1/plans/small/explanation")).json();
  const plan = await (await request.get("/v1/plans/small")).json();
  const move = why.neighbours.find((each: { outcome: string }) => each.outcome === "slower");
  const [field] = move.move.split(" ");
  const value = move.move.split(" -> ")[1];
  await page.goto(`/plans/small/alternatives?choice=${field}%3D${value}`);
  await page.getByRole("button", { name: "Solve" }).click();
  await page.getByRole("link", { name: "Compare with this plan" }).click();
  const row = page
    .getByRole("row")
    .filter({ has: page.getByRole("rowheader", { name: field, exact: true }) });
  await expect(row).toContainText(secondsChange(move.step_time_s - plan.step_time_s));
});

test("the same plan on both sides has no differences", async ({ page }) => {
  await page.goto("/diff/dense/dense");
  await expect(page.getByText("The two plans are the same.")).toBeVisible();
  await expect(page.getByRole("table")).toHaveCount(0);
});

test("a plan that is not there is a problem with its reason", async ({ page }) => {
  await page.goto("/diff/dense/no-such-label");
  await expect(page.getByRole("alert")).toContainText("no-such-label");
});

for (const { theme, width } of looksAt("diff")) {
  test(`comparison of two plans at ${width} px, ${theme}`, async ({ page }) => {
    await inTheme(page, theme);
    await page.setViewportSize({ width, height: 900 });
    await page.goto("/diff/dense/dense-wide");
    await expect(page.getByRole("img", { name: /From a to b/ }).first()).toBeVisible();
    await expectNoSidewaysScroll(page);
    await expectAccessible(page);
    await picture(page, `diff-${width}-${theme}`);
  });
}
