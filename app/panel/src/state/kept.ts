/** What a reviewer keeps as it is: it leaves the desk of this browser until something about it changes. */

import { useSyncExternalStore } from "react";

const NAME = "priors-kept";
const MOST = 2_000;
/** Items that are remembered; the oldest are forgotten. */
const listeners = new Set<() => void>();

type Kept = Readonly<Record<string, string>>;

let current: Kept = read();

function read(): Kept {
  try {
    return JSON.parse(window.localStorage.getItem(NAME) ?? "{}") as Kept;
  } catch {
    return {};
  }
}

function set(next: Kept): void {
  current = next;
  window.localStorage.setItem(NAME, JSON.stringify(next));
  for (const listener of listeners) listener();
}

/** Keeps an item as it now is; an empty text forgets it. */
export function keep(id: string, as: string): void {
  const others = Object.entries(current).filter(([name]) => name !== id);
  set(Object.fromEntries([...others, ...(as ? [[id, as]] : [])].slice(-MOST)));
}

export function useKept(): Kept {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
}
