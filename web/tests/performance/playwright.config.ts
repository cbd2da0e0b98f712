import { defineConfig } from "@playwright/test";
import screens from "../../playwright.config";

const server = Array.isArray(screens.webServer) ? screens.webServer[0] : screens.webServer;

/** Measurements of the pages: they print what they find and refuse nothing.  `npm run measure`. */
export default defineConfig({
  ...screens,
  testDir: ".",
  testMatch: "*.measure.ts",
  outputDir: "../../test-results",
  // A recording would be measured along.
  use: { ...screens.use, trace: "off" },
  webServer: server && { ...server, cwd: "../../.." },
});
