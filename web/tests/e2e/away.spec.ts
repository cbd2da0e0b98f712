import { expect, expectAccessible, picture, test } from "./screen";
import { freePort, startServer } from "./server";

test("a service that wants a key is asked for with one, kept for this tab only", async ({
  page,
  context,
}) => {
  const server = await startServer("--keys");
  try {
    await page.goto(`${server.address}/plans`);
    const dialog = page.getByRole("dialog", { name: "This service asks who you are" });
    await expect(dialog).toBeVisible();
    await expectAccessible(page);
    await picture(page, "key");
    await page.getByLabel("API key or token").fill("mw_00000000.wrong");
    await page.getByRole("button", { name: "Use this key" }).click();
    await expect(dialog).toContainText("does not accept the key");
    await page.getByLabel("API key or token").fill(server.key);
    await page.getByLabel("API key or token").press("Enter");
    await expect(dialog).toBeHidden();
    await expect(page.getByRole("heading", { name: "No plans are stored yet" })).toBeVisible();
    await page.reload();
    await expect(page.getByRole("heading", { name: "No plans are stored yet" })).toBeVisible();
    expect(await context.cookies()).toEqual([]);
    expect(await page.evaluate(() => localStorage.length)).toBe(0);
    const other = await context.newPage();
    await other.goto(`${server.address}/plans`);
    await expect(other.getByRole("dialog")).toBeVisible();
  } finally {
    await server.stop();
  }
});

test("a service that goes away and comes back finds everything that was typed", async ({ page, noise }) => {
  const port = await freePort();
  const flags = ["--empty", "--port", String(port)];
  let server = await startServer(...flags);
  try {
    await page.goto(`${server.address}/?model=llama-3.1-8b&devices=8&batch=64`);
    await expect(page.getByText(/parameters on [\d,]+ devices/)).toBeVisible();
    await server.stop();
    await page.getByLabel("Sequence length").fill("2048");
    await page.getByRole("button", { name: "Plan", exact: true }).click();
    await expect(page.getByRole("alert")).toContainText("The service does not answer");
    await expectAccessible(page);
    server = await startServer(...flags);
    await page.reload();
    await expect(page.getByLabel("Sequence length")).toHaveValue("2048");
    await page.getByRole("button", { name: "Plan", exact: true }).click();
    await expect(page).toHaveURL(/\/plans\/[0-9a-f]{64}$/);
    await expect(page.getByText(/64 samples of 2,048 tokens/)).toBeVisible();
    // Parts of the page that still load would not find the service that ends now.
    await page.goto("about:blank");
  } finally {
    await server.stop();
  }
  // The browser writes down that nobody answered; nothing else went wrong.
  expect(noise.filter((each) => !/ERR_CONNECTION_REFUSED/.test(each))).toEqual([]);
  noise.length = 0;
});
