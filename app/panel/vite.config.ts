import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

interface Modules {
  readonly getModuleInfo: (id: string) => { readonly importers: readonly string[]; readonly isEntry: boolean } | null;
}

/** The modules that the page needs before anything is drawn make one file: each request more takes time before it. */
function isNeededAtOnce(id: string, modules: Modules, seen = new Set<string>()): boolean {
  const found = modules.getModuleInfo(id);
  if (!found || seen.has(id)) return false;
  seen.add(id);
  return found.isEntry || found.importers.some((importer) => isNeededAtOnce(importer, modules, seen));
}

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
    rolldownOptions: {
      output: {
        codeSplitting: { groups: [{ debugName: "first", name: (id, modules) => (isNeededAtOnce(id, modules) ? "first" : null) }] },
      },
    },
    license: { fileName: "licenses.md" },
  },
  server: { proxy: { "/api": service, "/ready": service } },
  test: { environment: "happy-dom", restoreMocks: true },
});
