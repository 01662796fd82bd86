/** The name that goes with this browser's ratings. */

import { storeOf } from "./store";

const NAME = "priors-reviewer";
const LETTERS = 4;

export const REVIEWER_LIMIT = 100;

function kept(): string {
  return window.localStorage.getItem(NAME) ?? "";
}

const store = storeOf(kept());
// Another window of this browser may have set it.
window.addEventListener("storage", () => store.set(kept()));

export function keepReviewer(name: string): void {
  window.localStorage.setItem(NAME, name.trim());
  store.set(name.trim());
}

/** The reviewer's name. Who has not set one gets one with the first rating, so that two browsers are two reviewers. */
export function reviewer(): string {
  if (kept() === "") keepReviewer(`Reviewer ${crypto.randomUUID().slice(0, LETTERS)}`);
  return kept();
}

export const useReviewer = store.use;
