/** Light, dark, or as the system has it. */

import { storeOf } from "./store";

type Theme = "system" | "light" | "dark";

const NAME = "priors-theme";
const NEXT: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const chosen = storeOf(kept());
const scheme = storeOf(schemeOf(kept()));

function kept(): Theme {
  const found = window.localStorage.getItem(NAME);
  return found === "light" || found === "dark" ? found : "system";
}

function schemeOf(theme: Theme): "light" | "dark" {
  return theme === "system" ? (dark.matches ? "dark" : "light") : theme;
}

export function applyTheme(): void {
  const theme = chosen.get();
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  scheme.set(schemeOf(theme));
}

dark.addEventListener("change", applyTheme);

/** Takes the next theme, and keeps it in this browser. */
export function turnTheme(): void {
  const next = NEXT[chosen.get()];
  window.localStorage.setItem(NAME, next);
  chosen.set(next);
  applyTheme();
}

export const useTheme = chosen.use;

/** The theme in use, for code that draws with colours of its own. */
export const useScheme = scheme.use;
