/** Light, dark, or as the system has it. */

import { useState } from "react";

export type Theme = "system" | "light" | "dark";

const NAME = "priors-theme";
const NEXT: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };

function kept(): Theme {
  const found = window.localStorage.getItem(NAME);
  return found === "light" || found === "dark" ? found : "system";
}

export function applyTheme(theme: Theme = kept()): void {
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
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
