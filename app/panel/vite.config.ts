import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

/** Where `npm run dev` finds a running service. */
const service = "http://127.0.0.1:8000";

export default defineConfig({
  plugins: [react()],
  build: {
    // Nothing inline: the content security policy allows files of the service alone.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    reportCompressedSize: false,
    // The licences of what is bundled go along with it.
    license: { fileName: "licenses.md" },
  },
  server: { proxy: { "/api": service, "/ready": service } },
  test: { environment: "happy-dom", restoreMocks: true },
});
