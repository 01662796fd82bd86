/** What is tried in the drawer, and what is open beside it, with which it begins. */

import { useEffect } from "react";
import { storeOf } from "./store";

export interface Tried {
  readonly tab: "history" | "plan" | "context";
  readonly text: string;
  readonly agent: string;
  /** The preset of a history, the files of a plan, or the session of a context; empty for none. */
  readonly option: string;
  /** Tokens; without a number, the service's own. */
  readonly budget: number | null;
}

const NOTHING: Tried = { tab: "history", text: "", agent: "", option: "", budget: null };
const store = storeOf(NOTHING);
let subject = "";

export const useTried = store.use;

export function ask(asked: Tried): void {
  store.set({ ...asked, text: asked.text.trim() });
}

/** Another tab asks the same, with options of its own. */
export function chooseTab(tab: Tried["tab"]): void {
  const { text, agent } = store.get();
  store.set({ ...NOTHING, tab, text, agent });
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
  if (subject !== "") store.set({ ...NOTHING, tab: store.get().tab, text: subject });
}
