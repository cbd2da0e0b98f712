import { defineConfig, devices } from "@playwright/test";

/**
 * Real Chromium against a real, seeded `meshwright serve`; nothing is mocked.
 *
 * MESHWRIGHT_WEB_URL: use a server that runs already (`npm run seeded` starts one).  MESHWRIGHT_PYTHON: whose Python, seen from the repository.
 * CHROMIUM: which browser.  MESHWRIGHT_TRACE: record what a failing test did; a recording costs as much as the page itself.
 */
const address = process.env.MESHWRIGHT_WEB_URL;
/** Each has a seeded service of its own. */
const workers = address ? 1 : 2;
const python = process.env.MESHWRIGHT_PYTHON ?? ".venv/bin/python";

export default defineConfig({
  testDir: "tests/e2e",
  outputDir: "test-results",
  fullyParallel: false,
  workers,
  forbidOnly: Boolean(process.env.CI),
  retries: 0,
  // Cores are shared with whatever else runs; a test that waits says for what, not for how long.
  timeout: 600_000,
  expect: { timeout: 180_000 },
  reporter: [["list"]],
  use: {
    ...devices["Desktop Chrome"],
    baseURL: address,
    launchOptions: { executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] },
    trace: process.env.MESHWRIGHT_TRACE ? "retain-on-failure" : "off",
    screenshot: "only-on-failure",
  },
  projects: [
    { name: "screens", grepInvert: /@alone/ },
    // What is measured by a clock has no other screen beside it.
    { name: "alone", grep: /@alone/, workers: 1, dependencies: ["screens"] },
  ],
  webServer: address
    ? undefined
    : {
        command: `${python} -m tests.web.serve_seeded --services ${workers}`,
        cwd: "..",
        wait: { stdout: /seeded: port (?<meshwright_web_ports>[\d-]+)\n/ },
        timeout: 600_000,
        gracefulShutdown: { signal: "SIGTERM", timeout: 150_000 },
      },
});
