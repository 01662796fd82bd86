/** Notices of changes, with their undo. */

import { storeOf } from "./store";

export interface Notice {
  readonly id: number;
  readonly text: string;
  readonly tone: "plain" | "bad";
  readonly undo?: () => Promise<unknown>;
}

const MOST = 3;
const store = storeOf<readonly Notice[]>([]);
let counter = 0;
/** What can be undone, the latest last, as long as the page is open. */
let undos: readonly Notice[] = [];

export function dismiss(id: number): void {
  store.set(store.get().filter((notice) => notice.id !== id));
}

function add(notice: Omit<Notice, "id">): void {
  const others = store.get().filter(({ text, tone }) => tone !== "bad" || text !== notice.text);
  const dropped = others.filter(({ tone }) => tone === "plain").slice(0, Math.max(0, others.length + 1 - MOST));
  const added = { ...notice, id: ++counter };
  if (added.undo) undos = [...undos, added];
  store.set([...others.filter((one) => !dropped.includes(one)), added]);
}

export function notify(text: string, undo?: () => Promise<unknown>): void {
  add(undo ? { text, tone: "plain", undo } : { text, tone: "plain" });
}

export function notifyFailure(what: string, error: unknown): void {
  add({ text: `${what}: ${error instanceof Error ? error.message : String(error)}`, tone: "bad" });
}

/** Undoes a change once: that of a notice, or the latest. */
export function takeBack(notice: Notice | undefined = undos.at(-1)): void {
  if (!notice?.undo || !undos.includes(notice)) return;
  undos = undos.filter((one) => one !== notice);
  dismiss(notice.id);
  notice.undo().catch((error: unknown) => notifyFailure("Undo failed", error));
}

export const useNotices = store.use;
