import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** The bundle goes into the Python package: `meshwright serve` needs no Node. */
export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "../api/static",
    emptyOutDir: true,
    // The bundle budget reads which chunks the first page loads.
    manifest: "manifest.json",
    // The Content-Security-Policy allows no data: addresses for scripts and fonts.
    assetsInlineLimit: 0,
    // A hint that browsers of the last years know by themselves, and others may do without.
    modulePreload: { polyfill: false },
    sourcemap: false,
    rolldownOptions: {
      output: {
        // What five screens and more need is one file: packed together it is smaller, and asked for once.
        codeSplitting: { groups: [{ name: "shared", test: /src.(api|components|lib)./, minShareCount: 5 }] },
      },
    },
    reportCompressedSize: false,
  },
  server: {
    // `npm run dev` beside `meshwright serve`.
    proxy: Object.fromEntries(
      ["/v1", "/version", "/openapi.json"].map((path) => [
        path,
        process.env.MESHWRIGHT_URL ?? "http://127.0.0.1:8642",
      ]),
    ),
  },
});
