import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

interface Modules {
  readonly getModuleInfo: (id: string) => { readonly importers: readonly string[] } | null;
}

/** The modules that the page needs before anything is drawn make one file: each request more takes time before it. */
function isNeededAtOnce(id: string, modules: Modules, seen = new Set<string>()): boolean {
  if (id.endsWith("/src/main.tsx")) return true;
  if (seen.has(id)) return false;
  seen.add(id);
  return modules.getModuleInfo(id)?.importers.some((importer) => isNeededAtOnce(importer, modules, seen)) ?? false;
}

const FIRST = "src/first.ts";

/** Puts a file before the others that is run while they are read. */
const askingFirst: Plugin = {
  name: "asking-first",
  apply: "build",
  buildStart() {
    this.emitFile({ type: "chunk", id: FIRST });
  },
  transformIndexHtml: {
    order: "post",
    handler(_html, { bundle = {} }) {
      const file = Object.values(bundle).find((one) => one.type === "chunk" && one.facadeModuleId?.endsWith(FIRST))?.fileName;
      return [{ tag: "script", attrs: { type: "module", src: `/${file}` }, injectTo: "head-prepend" }];
    },
  },
};

/** Where `npm run dev` finds a running service. */
const service = "http://127.0.0.1:8000";

export default defineConfig({
  plugins: [react(), askingFirst],
  build: {
    // Nothing inline: the content security policy allows files of the service alone.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    reportCompressedSize: false,
    // The licences of what is bundled go along with it.
    rolldownOptions: {
      output: {
        codeSplitting: { groups: [{ debugName: "index", name: (id, modules) => (isNeededAtOnce(id, modules) ? "index" : null) }] },
      },
    },
    license: { fileName: "licenses.md" },
  },
  server: { proxy: { "/api": service, "/ready": service } },
  test: { environment: "happy-dom", restoreMocks: true },
});
