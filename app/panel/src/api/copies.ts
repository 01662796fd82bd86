/** The panel's copies of what is stored, kept in step with changes before the service is asked again. */

import type { QueryClient } from "@tanstack/react-query";
import { everywhere, type Service } from "./client";

/** Asks again for what this window shows of the routes that begin so. */
export function askAgain(cache: QueryClient, routes: string): Promise<void> {
  return cache.invalidateQueries({ predicate: ({ queryKey: [, route] }) => String(route).startsWith(routes) });
}

/** Asks again for what is on the page: for all, or for the routes that begin so. */
export async function refresh({ cache }: Service, routes = "/api/"): Promise<void> {
  // The first change in a workspace makes it.
  void askAgain(everywhere.cache, "/api/workspaces");
  await askAgain(cache, routes);
}

interface Copy {
  readonly id: string;
  readonly quality: number;
}

/** Nothing within a copy is one: that keeps a look through thousands of them short. */
function isCopy(data: object): data is Copy {
  return "id" in data && "quality" in data;
}

/** Every copy of these memories, in lists, on the map, among the hits of a search, or as what is open. */
export function copiesOf<T extends Copy>(cache: QueryClient, ids: ReadonlySet<string>): readonly T[] {
  const found: T[] = [];
  const look = (data: unknown) => {
    if (typeof data !== "object" || data === null) return;
    if (!isCopy(data)) for (const part of Object.values(data)) look(part);
    else if (ids.has(data.id)) found.push(data as T);
  };
  for (const query of cache.getQueryCache().getAll()) look(query.state.data);
  return found;
}

/** Shows the quality of memories wherever the page has them. */
export function showQualities(cache: QueryClient, qualities: ReadonlyMap<string, number>): void {
  cache.setQueriesData({}, (data: unknown) => withQualities(data, qualities));
}

/** The same data if none of the memories is in it: what did not change is not drawn again. */
function withQualities<T>(data: T, qualities: ReadonlyMap<string, number>): T {
  if (typeof data !== "object" || data === null) return data;
  if (isCopy(data)) return qualities.has(data.id) ? { ...data, quality: qualities.get(data.id) } : data;
  if (Array.isArray(data)) {
    const parts = data.map((part: unknown) => withQualities(part, qualities));
    return parts.some((part, place) => part !== data[place]) ? (parts as T) : data;
  }
  const entries = Object.entries(data).map(([name, part]) => [name, withQualities(part, qualities)] as const);
  return entries.some(([name, part]) => part !== data[name as keyof T]) ? (Object.fromEntries(entries) as T) : data;
}
