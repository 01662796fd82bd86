/** Requests and the texts of answers. Nothing here waits. */

import { PriorsError, UnreadableAnswer } from "./errors.js";
import type { Pages, Route, Values } from "./types.js";

/** Returns the path and query of a request. */
export function addressOf(route: Route, given: Values): string {
  const path = route.path.replace(/{(\w+)}/g, (_, name: string) => segment(name, given[name]));
  const query = new URLSearchParams();
  for (const name of route.query) {
    for (const one of [given[name]].flat()) {
      if (one !== undefined && one !== null) query.append(name, String(one));
    }
  }
  return query.size ? `${path}?${query}` : path;
}

/** Returns the body as JSON; undefined if the route has none. */
export function bodyOf(route: Route, given: Values): string | undefined {
  if (route.body === "data") return JSON.stringify(given.data);
  if (route.body !== "fields") return undefined;
  const elsewhere = new Set([...route.query, ...[...route.path.matchAll(/{(\w+)}/g)].map(([, name]) => name)]);
  return JSON.stringify(Object.fromEntries(Object.entries(given).filter(([name]) => !elsewhere.has(name))));
}

/** Returns a value as one segment of a path. */
function segment(name: string, value: unknown): string {
  const text = String(value ?? "");
  // A URL with such a segment is that of another route.
  if (["", ".", ".."].includes(text)) throw new PriorsError(`${name}: ${JSON.stringify(text)} cannot stand in a path`);
  return encodeURIComponent(text);
}

/** Returns a header's value as bytes of UTF-8; the error does not show it, as it may be a key. */
export function headerValue(name: string, value: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
  if (/[\0-\x1f\x7f]/.test(value)) {
    throw new PriorsError(`the ${name} has a line break or another control character, which a header cannot carry`);
  }
  return String.fromCharCode(...new TextEncoder().encode(value));
}

/** Reads JSON. */
export function decoded(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UnreadableAnswer(`the answer is not one of Priors, check the URL: ${(error as Error).message}`);
  }
}

/** Returns the items of a page and the value of the parameter that asks for the next page; undefined after the last. */
export function paged(pages: Pages, answer: unknown, before: unknown): readonly [readonly Values[], unknown] {
  if (pages.by === "cursor") {
    const page = answer as Readonly<Record<string, unknown>>;
    return [page[pages.key] as readonly Values[], page.next ?? undefined];
  }
  const items = answer as readonly Values[];
  const last = items.at(-1);
  if (last === undefined) return [items, undefined];
  return [items, pages.by === "last" ? last[pages.key] : ((before as number | undefined) ?? 0) + items.length];
}
