import { defineConfig, devices } from "@playwright/test";

/**
 * Real Chromium against a real, seeded `meshwright serve`; nothing is mocked.
 *
 * MESHWRIGHT_WEB_URL: use a server that runs already (`npm run seeded` starts one).  MESHWRIGHT_PYTHON: whose Python, seen from the repository.
 * CHROMIUM: which browser.
 */
const address = process.env.MESHWRIGHT_WEB_URL;
const python = process.env.MESHWRIGHT_PYTHON ?? ".venv/bin/python";

export default defineConfig({
  testDir: "tests/e2e",
  outputDir: "test-results",
  fullyParallel: false,
  workers: 1,
  forbidOnly: Boolean(process.env.CI),
  retries: 0,
  // Two cores are shared; a test that waits says for what, not for how long.
  timeout: 180_000,
  expect: { timeout: 45_000 },
  reporter: [["list"]],
  use: {
    ...devices["Desktop Chrome"],
    baseURL: address,
    launchOptions: { executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] },
    trace: "retain-on-failure",
  },
  webServer: address
    ? undefined
    : {
        command: `${python} -m tests.web.serve_seeded`,
        cwd: "..",
        wait: { stdout: /seeded: port (?<meshwright_web_port>\d+)/ },
        timeout: 600_000,
        gracefulShutdown: { signal: "SIGTERM", timeout: 150_000 },
      },
});
