/** What a reviewer keeps as it is: it leaves the desk of this browser until something about it changes. */

import { storeOf } from "./store";

const NAME = "priors-kept";
const MOST = 2_000;
/** Items that are remembered; the oldest are forgotten. */

type Kept = Readonly<Record<string, string>>;

const store = storeOf<Kept>(read());

function read(): Kept {
  try {
    return JSON.parse(window.localStorage.getItem(NAME) ?? "{}") as Kept;
  } catch {
    return {};
  }
}

/** Keeps an item as it now is; an empty text forgets it. */
export function keep(id: string, as: string): void {
  const others = Object.entries(store.get()).filter(([name]) => name !== id);
  const next: Kept = Object.fromEntries([...others, ...(as ? [[id, as]] : [])].slice(-MOST));
  window.localStorage.setItem(NAME, JSON.stringify(next));
  store.set(next);
}

export const useKept = store.use;
