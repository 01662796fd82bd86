/** The API key of this browser tab, and whether the service asks for one. */

import type { MadeKey } from "../api/schema";
import { storeOf } from "./store";

const NAME = "priors-key";
const asked = storeOf(false);
/** The key that was made last, with its secret, until somebody hides it. */
export const madeKey = storeOf<MadeKey | null>(null);

export function apiKey(): string | null {
  return window.sessionStorage.getItem(NAME);
}

export function keepKey(key: string): void {
  window.sessionStorage.setItem(NAME, key);
  asked.set(false);
}

/** The service refused the key, or the lack of one. */
export function askForKey(): void {
  asked.set(true);
}

/** Drops the key, so that the reader can enter another. */
export function changeKey(): void {
  window.sessionStorage.removeItem(NAME);
  madeKey.set(null);
  askForKey();
}

export const useKeyAsked = asked.use;
