/** What is tried in the drawer, and what is open beside it, with which it begins. */

import { useEffect } from "react";
import { storeOf } from "./store";

/** What each tab asks at first; budgets are in tokens. */
export const STANDARD = {
  history: { text: "", agent: "", preset: "both", k: 3, budget: 500, relevance: 0.7, quality: 0.3 },
  plan: { text: "", agent: "", files: "", budget: 400 },
  /** With the id of the session whose latest turns are shown, and of the context that is open. */
  context: { text: "", agent: "", session: "", budget: 4_000, made: "" },
};
export type Tab = keyof typeof STANDARD;
export type Asked<T extends Tab> = Readonly<(typeof STANDARD)[T]>;

const store = storeOf<{ readonly tab: Tab } & { readonly [T in Tab]: Asked<T> }>({ tab: "history", ...STANDARD });
let subject = "";

export const useTried = store.use;

export function ask<T extends Tab>(tab: T, asked: Asked<T>): void {
  store.set({ ...store.get(), [tab]: { ...asked, text: asked.text.trim() } });
}

/** Another tab asks the same, with options of its own. */
export function chooseTab(tab: Tab): void {
  const tried = store.get();
  const { text, agent } = tried[tried.tab];
  store.set({ ...tried, [tab]: { ...STANDARD[tab], text, agent }, tab });
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
  const { tab } = store.get();
  if (subject !== "") store.set({ ...store.get(), [tab]: { ...STANDARD[tab], text: subject } });
}
