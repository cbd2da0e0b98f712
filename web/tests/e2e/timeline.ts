/** What the tests of the timeline share: its parts, and the API's numbers behind it. */

import type { APIRequestContext, Page } from "@playwright/test";
import type { Schemas } from "../../src/api/client";
import { expect } from "./screen";

export const chart = (page: Page) => page.getByRole("application", { name: /Timeline/ });
export const panel = (page: Page) => page.getByRole("complementary", { name: "Selected action" });
export const search = (page: Page) => new URL(page.url()).searchParams;

export async function stepOf(request: APIRequestContext, plan: string): Promise<Schemas["StepView"]> {
  return (await request.get(`/v1/plans/${plan}/step`)).json();
}

export async function open(page: Page, address: string): Promise<void> {
  await page.goto(address);
  await expect(chart(page)).toBeVisible();
}

/** Milliseconds as the page writes them, from the API's nanoseconds. */
export function ms(ns: number | undefined): string {
  const text = ((ns ?? Number.NaN) / 1e6).toLocaleString("en-US", {
    minimumFractionDigits: 3,
    maximumFractionDigits: 3,
  });
  return `${text}\u00a0ms`;
}
