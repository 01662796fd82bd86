/** The panel's copies of memories, kept in step with changes before the service is asked again. */

import type { Kept } from "./client";
import { changeNodes, nodeOf } from "./graph";
import type { Memory, MemoryPage, Rated, SearchAnswer } from "./types";

/** Tells the other windows of this browser what to ask for again. */
const windows = new BroadcastChannel("priors");

export function listenToWindows(client: Kept["client"]): void {
  windows.onmessage = ({ data }: MessageEvent<readonly string[]>) => void client.invalidateQueries({ queryKey: data });
}

function refresh({ client }: Kept, queryKey: readonly string[]): Promise<void> {
  windows.postMessage(queryKey);
  return client.invalidateQueries({ queryKey });
}

export function refreshAll(kept: Kept): Promise<void> {
  return refresh(kept, [kept.within]);
}

export function showQualities(kept: Kept, rated: readonly Rated[]): void {
  const qualities = new Map(rated.map(({ rating, quality }) => [rating.memory_id, quality]));
  changeNodes(kept, [...qualities.keys()], (node) => ({ ...node, quality: qualities.get(node.id) ?? node.quality }));
  for (const name of ["ratings", "memory", "memories", "review", "search"]) void refresh(kept, [kept.within, name]);
}

export function refreshJudgement(kept: Kept, id: string): void {
  for (const key of [["ratings", id], ["memory", id], ["review"]]) void refresh(kept, [kept.within, ...key]);
}

type Pages = { readonly pages: readonly MemoryPage[] };

function pagesOf({ client, within }: Kept): readonly MemoryPage[] {
  return client.getQueriesData<Pages>({ queryKey: [within, "memories"] }).flatMap(([, data]) => data?.pages ?? []);
}

export function listed(kept: Kept, id: string): Memory | undefined {
  return pagesOf(kept).flatMap((page) => page.memories).find((memory) => memory.id === id);
}

export function qualityOf(kept: Kept, id: string): number | undefined {
  const open = kept.client.getQueryData<Memory>([kept.within, "memory", id]);
  return (open ?? listed(kept, id) ?? nodeOf(kept, id))?.quality;
}


export function showQuality(kept: Kept, id: string, quality: number): void {
  const { client, within } = kept;
  const shown = <T extends { readonly id: string }>(item: T): T => (item.id === id ? { ...item, quality } : item);
  client.setQueryData<Memory>([within, "memory", id], (memory) => memory && shown(memory));
  client.setQueriesData<Pages>({ queryKey: [within, "memories"] }, (data) =>
    data && { ...data, pages: data.pages.map((page) => ({ ...page, memories: page.memories.map(shown) })) },
  );
  changeNodes(kept, [id], (node) => ({ ...node, quality }));
  client.setQueriesData<SearchAnswer>({ queryKey: [within, "search"] }, (data) =>
    data && { ...data, hits: data.hits.map(shown) },
  );
}
