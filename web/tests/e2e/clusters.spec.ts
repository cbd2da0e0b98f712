import type { Schemas } from "../../src/api/client";
import { bandwidth, bytes, percent, seconds } from "../../src/lib/format";
import { looksAt } from "./looks";
import { expect, expectAccessible, expectNoSidewaysScroll, inTheme, picture, test } from "./screen";

test("a cluster says what it is made of, and where each number comes from", async ({ page, request }) => {
  const { items } = await (await request.get("/v1/clusters")).json();
  await page.goto("/clusters");
  await expect(page.getByRole("table").getByRole("row")).toHaveCount(items.length + 1);
  await page.getByRole("button", { name: "dgx-h100", exact: true }).click();
  await expect(page).toHaveURL(/cluster=dgx-h100/);
  const sources = page.getByRole("table", { name: /^Where the numbers come from/ });
  await expect(sources.getByRole("rowheader", { name: "scale_up.bandwidth_bytes_per_s" })).toBeVisible();
  await expect(sources.getByRole("link").first()).toHaveAttribute("href", /^https:/);
  await page.getByRole("link", { name: "Plan on it" }).click();
  await expect(page.getByLabel("Cluster", { exact: true })).toHaveValue("dgx-h100");
});

test("a profile shows what is measured, how well it fits, and what is missing", async ({ page, request }) => {
  const fits = await (await request.get("/v1/profiles/made-up/fits")).json();
  await page.goto("/clusters?show=profiles&profile=made-up");
  const cells = fits.tables.flatMap(
    (each: { by_size: { measured: number; filled_in: number }[] }) => each.by_size,
  );
  const measured = cells.reduce((sum: number, each: { measured: number }) => sum + each.measured, 0);
  await expect(
    page.getByRole("img", { name: new RegExp(`${measured} of \\d+ points of the grid`) }),
  ).toBeVisible();
  const errors = page.getByRole("table", { name: /^Errors of the fits/ });
  const [table] = fits.tables;
  await expect(errors.getByRole("row").filter({ hasText: `matmul ${table.dtype}` })).toContainText(
    `${(table.residuals.site_left_out.median * 100).toFixed(1)}\u00a0%`,
  );
  await expect(page.getByText(fits.missing[0].what)).toBeVisible();
  await expect(page.getByText(fits.missing[0].command, { exact: true }).first()).toBeVisible();
});

test("a device shows the logs that were measured on it; one without any says how to begin", async ({
  page,
}) => {
  await page.goto("/clusters?show=devices&device=a100-sxm4-40gb");
  await expect(page.getByRole("img", { name: /curves? of all_reduce/ })).toBeVisible();
  await expect(page.getByRole("img", { name: /curves? of all_gather/ })).toBeVisible();
  await page.keyboard.press("j");
  await expect(page).toHaveURL(/device=a100-sxm4-80gb/);
  await page.goto("/clusters?show=devices&device=mi300x");
  await expect(page.getByText("Nothing is measured of it on this server")).toBeVisible();
});

test("curves of collectives are the API's points; a press or keys tell one, the address keeps the curve", async ({
  page,
  request,
}) => {
  const { collectives } = (await (
    await request.get("/v1/devices/a100-sxm4-40gb/fits")
  ).json()) as Schemas["FitsView"];
  const fit = collectives.find((each) => each.operation === "all_reduce");
  if (!fit) throw new Error("no curve");
  const { sizes_bytes, times_s, bus_bandwidths_bytes_per_s } = fit.points;
  await page.goto("/clusters?show=devices&device=a100-sxm4-40gb");
  const chart = page.getByRole("application", { name: /^all_reduce by message size/ });
  const curve = chart.locator("[data-curve]");
  await expect(curve.first().locator("path")).toHaveCount(1 + sizes_bytes.length);
  const told = (point: number) =>
    `${bytes(sizes_bytes[point], 3)}: ${seconds(times_s[point], 3)}, ${bandwidth(bus_bandwidths_bytes_per_s[point])}`;
  await chart.focus();
  await page.keyboard.press("ArrowRight");
  await expect(page.getByText(told(0))).toBeVisible();
  await page.keyboard.press("ArrowRight");
  await expect(page.getByText(told(1))).toBeVisible();
  await page.keyboard.press("End");
  await expect(page.getByText(told(sizes_bytes.length - 1))).toBeVisible();

  const last = await curve.first().locator("path").last().boundingBox();
  if (!last) throw new Error("no mark");
  await page.keyboard.press("Home");
  await expect(page.getByText(told(sizes_bytes.length - 1))).toBeHidden();
  await page.mouse.move(last.x + last.width / 2, last.y + last.height / 2);
  await expect(page.getByText(told(sizes_bytes.length - 1))).toBeVisible();
  await page.mouse.down();
  await page.mouse.up();
  const id = `all_reduce-${fit.group_size}-${fit.num_nodes}`;
  await expect(page).toHaveURL(new RegExp(`curve=${id}`));
  // The interval is one path more.
  await expect(chart.locator(`[data-curve="${id}"] path`)).toHaveCount(2 + sizes_bytes.length);
  await expect(page.getByText(/Between sizes the time is within/)).toContainText(
    percent(fit.sigma.factor_80 - 1),
  );
  const name = page.getByRole("button", { pressed: true, name: new RegExp(`^${fit.group_size} `) });
  await name.press("Enter");
  await expect(page).not.toHaveURL(/curve=/);

  const figure = page.getByRole("figure", { name: /^all_reduce/ });
  await figure.getByText("Show data").click();
  const row = figure.getByRole("table", { name: "Measured points of all_reduce" }).getByRole("row").nth(1);
  await expect(row.getByRole("cell")).toHaveText([
    bytes(sizes_bytes[0]),
    seconds(times_s[0]),
    bandwidth(bus_bandwidths_bytes_per_s[0]),
  ]);
});

test("a name that is not there is a problem with its reason", async ({ page }) => {
  await page.goto("/clusters?cluster=no-such-cluster");
  await expect(page.getByRole("alert")).toContainText("no-such-cluster");
});

test("the shelves are in the address, on keys, and back goes back", async ({ page }) => {
  await page.goto("/clusters");
  await expect(page.getByRole("table")).toBeVisible();
  await page.keyboard.press("2");
  await expect(page).toHaveURL(/show=devices/);
  await expect(page.getByRole("table", { name: /^Accelerators/ })).toBeVisible();
  await page.keyboard.press("3");
  await expect(page.getByRole("button", { name: "made-up" })).toBeVisible();
  await page.goBack();
  await expect(page).toHaveURL(/show=devices/);
});

test("a plan says which unmeasured numbers it leans on, and what measures them", async ({
  page,
  request,
}) => {
  const leaning = await (await request.get("/v1/plans/measured/leaning?rows=1000")).json();
  const unmeasured = leaning.lookups.filter(
    (each: { input: string }) => !["measured", "interpolated"].includes(each.input),
  ).length;
  await page.goto("/plans/measured");
  await expect(
    page.getByText(
      `This plan leans on ${unmeasured} of ${leaning.num_lookups} lookups that nothing measured`,
    ),
  ).toBeVisible();
  await expect(page.getByText(leaning.commands[0], { exact: true })).toBeVisible();
});

for (const { theme, width } of looksAt("clusters")) {
  for (const [name, address] of [
    ["clusters", "/clusters?cluster=dgx-h100"],
    ["profiles", "/clusters?show=profiles&profile=made-up"],
    ["curves", "/clusters?show=devices&device=a100-sxm4-40gb&curve=all_gather-8-1"],
  ] as const) {
    test(`${name} at ${width} px, ${theme}`, async ({ page }) => {
      await inTheme(page, theme);
      await page.setViewportSize({ width, height: 900 });
      await page.goto(address);
      const seen =
        name === "clusters" ? page.getByText("Where the numbers come from") : page.getByRole("img").first();
      await expect(seen.first()).toBeVisible();
      await expectNoSidewaysScroll(page);
      await expectAccessible(page);
      await picture(page, `${name}-${width}-${theme}`);
    });
  }
}
