import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

const page = (name: string) => new URL(name, import.meta.url).pathname;

export default defineConfig({
  plugins: [svelte()],
  // The shell serves these files from inside the program; nothing is fetched from elsewhere.
  base: "./",
  build: {
    target: "safari17.5",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    rolldownOptions: {
      input: [page("index.html"), page("launcher.html"), page("approval.html")],
    },
  },
  server: { port: 1420, strictPort: true },
  // Component tests need Svelte's browser build, not its server one.
  resolve: process.env["VITEST"] ? { conditions: ["browser"] } : {},
  test: { environment: "happy-dom", include: ["src/**/*.test.ts"] },
});
