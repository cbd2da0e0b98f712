/** What every test of a screen needs: the address of the service, themes, axe, and pictures to look at. */

import { AxeBuilder } from "@axe-core/playwright";
import { test as base, expect, type Page } from "@playwright/test";
import type { Theme } from "./looks";

export { THEMES, type Theme, WIDTHS_PX } from "./looks";
export { expect };

interface Screen {
  /** Messages of the page that nobody expected; a test fails if there are any. */
  noise: string[];
}

export const test = base.extend<Screen>({
  // Each worker has a service of its own: what one changes the other does not see.
  baseURL: async ({ baseURL }, use, { parallelIndex }) => {
    const ports = (process.env.MESHWRIGHT_WEB_PORTS ?? "").split("-");
    await use(baseURL ?? `http://127.0.0.1:${ports[parallelIndex]}`);
  },
  noise: [
    async ({ page }, use) => {
      const noise: string[] = [];
      page.on("pageerror", (error) => noise.push(String(error)));
      page.on("console", (message) => {
        // A refusal of the API is an answer; the browser writes it to the console as well.
        const expected = /Failed to load resource.*status of 4\d\d/.test(message.text());
        if (message.type() === "error" && !expected) noise.push(message.text());
      });
      await use(noise);
      expect(noise).toEqual([]);
    },
    { auto: true },
  ],
});

/** Follow the reader's system: dark or light. */
export async function inTheme(page: Page, theme: Theme): Promise<void> {
  await page.emulateMedia({ colorScheme: theme });
}

/** No violation of WCAG 2.2 A and AA, nor of axe's best practices. */
export async function expectAccessible(page: Page): Promise<void> {
  const found = await new AxeBuilder({ page })
    // Only what is wrong is told with its place; the pages have no frames that would need a page of their own to merge.
    .options({ resultTypes: ["violations"] })
    .setLegacyMode()
    .withTags(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"])
    .analyze();
  expect(
    found.violations.map((each) => `${each.id}: ${each.nodes.map((node) => node.html).join(" | ")}`),
  ).toEqual([]);
}

/** The page itself never scrolls sideways; wide tables scroll inside their frames. */
export async function expectNoSidewaysScroll(page: Page): Promise<void> {
  const { scrolled, shown } = await page.evaluate(() => ({
    scrolled: document.documentElement.scrollWidth,
    shown: document.documentElement.clientWidth,
  }));
  expect(scrolled).toBeLessThanOrEqual(shown);
}

/** As on a slow line: scripts whose address has `name` take as long as that. */
export async function slowScript(page: Page, name: string, ms: number): Promise<void> {
  await page.route(`**/assets/${name}-*.js`, async (route) => {
    await new Promise((resolve) => setTimeout(resolve, ms));
    await route.continue();
  });
}

/** A picture to look at, under test-results/pictures, if MESHWRIGHT_PICTURES is set; compared with nothing. */
export async function picture(page: Page, name: string): Promise<void> {
  if (!process.env.MESHWRIGHT_PICTURES) return;
  await page.screenshot({ path: `test-results/pictures/${name}.png`, fullPage: true });
}
