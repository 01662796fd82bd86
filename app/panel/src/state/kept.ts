/** What a reviewer keeps as it is: it leaves the desk of this browser until something about it changes. */

import { storeOf } from "./store";

const NAME = "priors-kept";
const MOST = 2_000;
/** Items that are remembered; the oldest are forgotten. */

/** The state in which each item was kept, by workspace and id. */
type Kept = Readonly<Record<string, string>>;

const store = storeOf<Kept>(read());
/** The browser may refuse to store: then this page alone remembers. */
let stored = true;

window.addEventListener("storage", ({ key }) => {
  if (key === NAME || key === null) store.set(read());
});

function read(): Kept {
  try {
    const found: unknown = JSON.parse(window.localStorage.getItem(NAME) ?? "{}");
    return typeof found === "object" && found !== null ? (found as Kept) : {};
  } catch {
    return {};
  }
}

function write(next: Kept): void {
  try {
    window.localStorage.setItem(NAME, JSON.stringify(next));
    stored = true;
  } catch {
    stored = false;
  }
  store.set(next);
}

export function keyOf(workspace: string, id: string): string {
  return `${workspace} ${id}`;
}

/** Keeps an item in its present state. */
export function keep(name: string, state: string): void {
  const others = Object.entries(current()).filter(([other]) => other !== name);
  write(Object.fromEntries([...others, [name, state]].slice(-MOST)));
}

/** Lets kept items wait again. */
export function forget(names: readonly string[]): void {
  const gone = new Set(names);
  write(Object.fromEntries(Object.entries(current()).filter(([name]) => !gone.has(name))));
}

/** What all windows of the browser keep. */
function current(): Kept {
  return stored ? read() : store.get();
}

export const useKept = store.use;
