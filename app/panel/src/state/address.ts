/** The address is the state: which view, which filters, what is open. */

import { storeOf } from "./store";

interface Address {
  readonly path: string;
  readonly params: URLSearchParams;
}

export type Changes = Readonly<Record<string, string | readonly string[] | null>>;

const store = storeOf(read());
let followed = false;

function read(): Address {
  return { path: window.location.pathname, params: new URLSearchParams(window.location.search) };
}

window.addEventListener("popstate", () => {
  followed = false;
  store.set(read());
});

/** Returns true if the reader came here by a link, and not by Back or a key that moves on. */
export function wasFollowed(): boolean {
  return followed;
}

export function useAddress(): Address {
  return store.use();
}

interface Going {
  readonly replace?: boolean;
  /** The reader chose to go there, and wants to be there. */
  readonly follow?: boolean;
}

export function go(href: string, { replace = false, follow = false }: Going = {}): void {
  if (href === window.location.pathname + window.location.search) return;
  followed = follow;
  if (replace) window.history.replaceState(null, "", href);
  else window.history.pushState(null, "", href);
  store.set(read());
}

/** Another view; the workspace goes along. */
export function linkTo(path: string, given: Changes = {}): string {
  const workspace = store.get().params.get("workspace");
  return hrefOf(path, changed(new URLSearchParams(), { workspace, ...given }));
}

/** The same view with other parameters; null takes one away. */
export function linkWith(changes: Changes): string {
  const { path, params } = store.get();
  return hrefOf(path, changed(params, changes));
}

/** A memory beside the list or the map that is open, else in Memory. */
export function linkToMemory(memory: string): string {
  return store.get().path === "/memory" ? linkWith({ memory }) : linkTo("/memory", { memory });
}

export function changeAddress(changes: Changes, options?: Going): void {
  go(linkWith(changes), options);
}

function changed(params: URLSearchParams, changes: Changes): URLSearchParams {
  const result = new URLSearchParams(params);
  for (const [name, value] of Object.entries(changes)) {
    result.delete(name);
    for (const one of typeof value === "string" ? [value] : (value ?? [])) {
      if (one !== "") result.append(name, one);
    }
  }
  return result;
}

function hrefOf(path: string, params: URLSearchParams): string {
  const query = params.toString();
  return query ? `${path}?${query}` : path;
}
