/** Notices of changes, with their undo. */

import { useSyncExternalStore } from "react";

export interface Notice {
  readonly id: number;
  readonly text: string;
  readonly tone: "plain" | "bad";
  readonly undo?: () => Promise<unknown>;
}

const MOST = 3;
const listeners = new Set<() => void>();
let notices: readonly Notice[] = [];
let counter = 0;

function set(next: readonly Notice[]): void {
  notices = next;
  for (const listener of listeners) listener();
}

export function dismiss(id: number): void {
  set(notices.filter((notice) => notice.id !== id));
}

function add(notice: Omit<Notice, "id">): void {
  const others = notices.filter(({ text, tone }) => tone !== "bad" || text !== notice.text);
  const dropped = others.filter(({ tone }) => tone === "plain").slice(0, Math.max(0, others.length + 1 - MOST));
  set([...others.filter((one) => !dropped.includes(one)), { ...notice, id: ++counter }]);
}

export function notify(text: string, undo?: () => Promise<unknown>): void {
  add(undo ? { text, tone: "plain", undo } : { text, tone: "plain" });
}

export function notifyFailure(what: string, error: unknown): void {
  add({ text: `${what}: ${error instanceof Error ? error.message : String(error)}`, tone: "bad" });
}

export function useNotices(): readonly Notice[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => notices,
  );
}
