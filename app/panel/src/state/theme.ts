/** Light, dark, or as the system has it. */

import { useState, useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";

const NAME = "priors-theme";
const NEXT: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };

function kept(): Theme {
  const found = window.localStorage.getItem(NAME);
  return found === "light" || found === "dark" ? found : "system";
}

export function applyTheme(theme: Theme = kept()): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

export function useTheme(): readonly [Theme, () => void] {
  const [theme, setTheme] = useState(kept);
  const turn = () => {
    const next = NEXT[theme];
    window.localStorage.setItem(NAME, next);
    applyTheme(next);
    setTheme(next);
  };
  return [theme, turn];
}

const dark = window.matchMedia("(prefers-color-scheme: dark)");

function subscribe(listener: () => void): () => void {
  const chosen = new MutationObserver(listener);
  chosen.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  dark.addEventListener("change", listener);
  return () => {
    chosen.disconnect();
    dark.removeEventListener("change", listener);
  };
}

/** The theme in use, for code that draws with colours of its own. */
export function useScheme(): "light" | "dark" {
  return useSyncExternalStore(subscribe, () => {
    const theme = document.documentElement.dataset.theme;
    return theme === "light" || theme === "dark" ? theme : dark.matches ? "dark" : "light";
  });
}
