/** The API key of this browser tab, and whether the service asks for one. */

import { useSyncExternalStore } from "react";

const NAME = "priors-key";
const listeners = new Set<() => void>();
let asked = false;

function changed(): void {
  for (const listener of listeners) listener();
}

export function apiKey(): string | null {
  return window.sessionStorage.getItem(NAME);
}

export function keepKey(key: string): void {
  window.sessionStorage.setItem(NAME, key);
  asked = false;
  changed();
}

/** The service refused the key, or the lack of one. */
export function askForKey(): void {
  if (asked) return;
  asked = true;
  changed();
}

/** Drops the key, so that the reader can enter another. */
export function changeKey(): void {
  window.sessionStorage.removeItem(NAME);
  askForKey();
}

export function useKeyAsked(): boolean {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => asked,
  );
}
