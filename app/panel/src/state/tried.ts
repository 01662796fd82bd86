/** What is tried in the drawer, and what is open beside it, with which it begins. */

import { useEffect, useSyncExternalStore } from "react";
import type { Changes } from "./address";

const listeners = new Set<() => void>();
let current: URLSearchParams = new URLSearchParams();
let subject = "";

function set(next: URLSearchParams): void {
  current = next;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useTried(): URLSearchParams {
  return useSyncExternalStore(subscribe, () => current);
}

/** Other parameters; null takes one away. */
export function changeTried(changes: Changes): void {
  const next = new URLSearchParams(current);
  for (const [name, value] of Object.entries(changes)) {
    next.delete(name);
    for (const one of typeof value === "string" ? [value] : (value ?? [])) if (one !== "") next.append(name, one);
  }
  set(next);
}

/** What is open is what a trial begins with. */
export function useSubject(text: string): void {
  useEffect(() => {
    subject = text;
    return () => {
      if (subject === text) subject = "";
    };
  }, [text]);
}

/** Begins with what is open; without anything open, with what was tried last. */
export function fillFromSubject(): void {
  if (subject !== "") set(new URLSearchParams({ q: subject, ...(current.get("for") ? { for: current.get("for") ?? "" } : {}) }));
}
