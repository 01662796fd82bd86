/** The name that goes with this browser's ratings. */

import { useSyncExternalStore } from "react";

const NAME = "priors-reviewer";
const LETTERS = 4;
const listeners = new Set<() => void>();

export const REVIEWER_LIMIT = 100;

function kept(): string {
  return window.localStorage.getItem(NAME) ?? "";
}

export function keepReviewer(name: string): void {
  if (name.trim() === "") window.localStorage.removeItem(NAME);
  else window.localStorage.setItem(NAME, name.trim());
  for (const listener of listeners) listener();
}

/** The reviewer's name. Who has not set one gets one with the first rating, so that two browsers are two reviewers. */
export function reviewer(): string {
  if (kept() === "") keepReviewer(`Reviewer ${crypto.randomUUID().slice(0, LETTERS)}`);
  return kept();
}

export function useReviewer(): string {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, kept);
}
