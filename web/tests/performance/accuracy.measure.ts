/** How long do 3,500 runs block the accuracy page, and how smoothly are they pointed at, filtered and walked? */

import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "../e2e/screen";
import { measured } from "./measured";

const REPOSITORY = fileURLToPath(new URL("../../..", import.meta.url));
const PYTHON = process.env.MESHWRIGHT_PYTHON ?? ".venv/bin/python";

for (const [report, runs] of [
  ["mine", "54 runs"],
  ["large", "3,500 runs"],
] as const) {
  test(`a report of ${runs}`, async ({ page, browser, baseURL }) => {
    test.setTimeout(300_000);
    if (report === "large")
      execFileSync(PYTHON, ["-m", "tests.web.large_report", baseURL ?? ""], { cwd: REPOSITORY });
    await page.setViewportSize({ width: 1600, height: 1000 });
    const chart = page.getByRole("img", { name: /lie in their interval/ });
    await measured(`${runs}: loading`, browser, page, async () => {
      await page.goto(`/accuracy?report=${report}`);
      await expect(chart).toHaveAccessibleName(new RegExp(`^${runs}:`));
    });
    const box = await chart.boundingBox();
    if (!box) throw new Error("no chart");
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    await measured(`${runs}: pointer`, browser, page, async () => {
      for (let move = 0; move < 120; move++)
        await page.mouse.move(x + 300 * Math.sin(move / 12), y + 200 * Math.cos(move / 7));
    });
    await measured(`${runs}: keys over runs`, browser, page, async () => {
      for (let press = 0; press < 40; press++) await page.keyboard.press("j");
    });
    for (const device of ["H100-SXM-80GB", ""])
      await measured(`${runs}: device ${device || "all"}`, browser, page, async () => {
        await page.getByRole("combobox", { name: "Device" }).selectOption(device);
        await expect(page).toHaveURL(device ? /device=/ : /^(?!.*device=)/);
        if (device) await expect(chart).not.toHaveAccessibleName(new RegExp(`^${runs}:`));
        else await expect(chart).toHaveAccessibleName(new RegExp(`^${runs}:`));
      });
    await measured(`${runs}: table by model, and by error`, browser, page, async () => {
      await page.getByRole("radio", { name: "by model" }).check();
      await page.getByRole("button", { name: "Median error" }).click();
      await expect(page).toHaveURL(/sort=median/);
    });
  });
}
