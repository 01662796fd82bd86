/** What the views ask of memories, and what they change. */

import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { whole } from "../parts/format";
import { notify, notifyFailure } from "../state/notices";
import { call, type Kept, keptWithin, memoryPath, query, workspace } from "./client";
import { changeNodes, dropNodes, nodeOf } from "./graph";
import { passing } from "./passing";
import type {
  Candidate, Changed, Facets, Filters, Memory, MemoryPage, MemoryUses, Rated, Rating, ReviewCounts, SearchAnswer, SearchInput,
} from "./types";

export const PAGE = 50;
export const FOUND = 50;
/** As many hits as a page: what is further down is not what was searched for. */

export interface Listing {
  readonly filters: Filters;
  readonly sort: string;
  readonly order: string;
}

export function useMemories({ filters, sort, order }: Listing, enabled: boolean) {
  const within = workspace();
  return useInfiniteQuery({
    queryKey: [within, "memories", filters, sort, order],
    queryFn: ({ pageParam, signal }) => {
      const { kinds, tags, task_types, verdicts, ...rest } = filters;
      const lists = { kind: kinds, tag: tags, task_type: task_types, verdict: verdicts };
      const asked = { ...rest, ...lists, sort, order, limit: PAGE, cursor: pageParam };
      return call<MemoryPage>(`/api/memories${query(asked)}`, { signal, within });
    },
    initialPageParam: "",
    getNextPageParam: (last) => last.next,
    placeholderData: keptWithin(within),
    enabled,
  });
}

/** Logged as a recall, like an agent's: it is asked once, and again only after a change. */
export function useSearch(text: string, filters: Filters) {
  const within = workspace();
  return useQuery({
    queryKey: [within, "search", text, filters],
    queryFn: ({ signal }) => {
      const body: SearchInput = { query: text, k: FOUND, filters, agent: "panel" };
      return call<SearchAnswer>("/api/search", { method: "POST", body, signal, within });
    },
    placeholderData: keptWithin(within),
    // What could not be answered in full is asked again when it is looked at again.
    staleTime: ({ state }) => (state.data?.degraded.length ? 0 : Number.POSITIVE_INFINITY),
    enabled: text !== "",
  });
}

export function useFacets() {
  const within = workspace();
  return useQuery({
    queryKey: [within, "facets"],
    queryFn: ({ signal }) => call<Facets>("/api/memories/facets", { signal, within }),
  });
}

export function useMemory(id: string) {
  const client = useQueryClient();
  const within = workspace();
  const known = listed({ client, within }, id);
  return useQuery<Memory>({
    queryKey: [within, "memory", id],
    queryFn: ({ signal }) => passing<Memory>(id, "", { signal, within }),
    ...(known ? { placeholderData: known } : {}),
  });
}

export function useNeighbours(memory: Memory) {
  const within = workspace();
  return useQuery({
    queryKey: [within, "neighbours", memory.id],
    queryFn: ({ signal }) => passing<readonly Memory[]>(memory.id, "/neighbours", { signal, within }),
    enabled: memory.source !== null && memory.ordinal !== null,
  });
}

export function useRatings(id: string) {
  const within = workspace();
  return useQuery({
    queryKey: [within, "ratings", id],
    queryFn: ({ signal }) => passing<readonly Rating[]>(id, "/feedback", { signal, within }),
  });
}

export function useUses(id: string) {
  const within = workspace();
  return useQuery({
    queryKey: [within, "uses", id],
    queryFn: ({ signal }) => passing<MemoryUses>(id, "/runs", { signal, within }),
  });
}

export function useReviewCounts() {
  const within = workspace();
  return useQuery({
    queryKey: [within, "review", "counts"],
    queryFn: ({ signal }) => call<ReviewCounts>("/api/memories/review-counts", { signal, within }),
  });
}

export function usePruneCandidates(limit: number) {
  const within = workspace();
  return useQuery({
    queryKey: [within, "review", "prune", limit],
    queryFn: ({ signal }) => call<readonly Candidate[]>(`/api/memories/prune-candidates${query({ limit })}`, { signal, within }),
    placeholderData: keptWithin(within),
  });
}

/** Memories that are out of every answer. */
export function useRetired(state: "quarantined" | "deleted", limit: number) {
  const within = workspace();
  return useQuery({
    queryKey: [within, "review", state, limit],
    queryFn: ({ signal }) => call<readonly Memory[]>(`/api/memories/${state}${query({ limit })}`, { signal, within }),
    placeholderData: keptWithin(within),
  });
}

interface Judgement {
  readonly id: string;
  readonly rating: 1 | -1;
  readonly comment: string;
}

function sendRating({ id, rating, comment }: Judgement, within: string): Promise<Rated> {
  return call<Rated>(memoryPath(id, "/feedback"), {
    method: "POST",
    body: { rating, comment },
    headers: { "Idempotency-Key": crypto.randomUUID() },
    within,
  });
}

function takeBack(feedback: string, within: string): Promise<Rated> {
  return call<Rated>(`/api/feedback/${feedback}`, { method: "DELETE", within });
}

function clamped(quality: number): number {
  return Math.max(-3, Math.min(3, quality));
}

/** Shows the quality that a rating will lead to; the one before it. */
function expectQuality(kept: Kept, id: string, rating: number): number | undefined {
  const before = qualityOf(kept, id);
  if (before !== undefined) showQuality(kept, id, clamped(before + rating));
  return before;
}

/** A rating is shown before the service has it, and taken back on screen if the service refuses it. */
export function useRate() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (judgement: Judgement) => sendRating(judgement, workspace()),
    onMutate: ({ id, rating }) => {
      const kept = { client, within: workspace() };
      return { kept, before: expectQuality(kept, id, rating) };
    },
    onSuccess: ({ rating, quality }, _judgement, { kept }) => {
      showQuality(kept, rating.memory_id, quality);
      notify(rating.rating > 0 ? "Rated up" : "Rated down", () => undoRating(kept, rating.feedback_id));
    },
    onError: (error, { id }, begun) => {
      if (begun?.before !== undefined) showQuality(begun.kept, id, begun.before);
      notifyFailure("The rating could not be saved", error);
    },
    onSettled: (_answer, _error, { id }, begun) => begun && refreshJudgement(begun.kept, id),
  });
}

async function undoRating(kept: Kept, feedback: string): Promise<void> {
  const { rating, quality } = await takeBack(feedback, kept.within);
  showQuality(kept, rating.memory_id, quality);
  notify("Rating undone");
  refreshJudgement(kept, rating.memory_id);
}

export function useUndoRating() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (feedback: string) => undoRating({ client, within: workspace() }, feedback),
    onError: (error) => notifyFailure("The rating could not be undone", error),
  });
}

export interface ManyRated {
  readonly ids: readonly string[];
  readonly rating: 1 | -1;
}

/** One rating for each of several memories; `done` counts them while they are sent. */
export function useRateMany() {
  const client = useQueryClient();
  const [done, setDone] = useState(0);
  const change = useMutation({
    mutationFn: async ({ ids, rating }: ManyRated) => {
      setDone(0);
      const kept = { client, within: workspace() };
      changeNodes(kept, ids, (node) => ({ ...node, quality: clamped(node.quality + rating) }));
      const answers = await inTurn(ids, (id) =>
        sendRating({ id, rating, comment: "" }, kept.within).finally(() => setDone((count) => count + 1)),
      );
      return { kept, answers };
    },
    onSuccess: ({ kept, answers }, { rating }) => {
      const rated = succeeded(answers);
      showQualities(kept, rated);
      if (rated.length) notify(`${several(rated.length)} rated ${rating > 0 ? "up" : "down"}`, () => undoRatings(kept, rated));
      const failure = answers.find((answer) => answer.status === "rejected");
      if (!failure) return;
      void client.invalidateQueries({ queryKey: [kept.within, "graph"] });
      notifyFailure(`${several(answers.length - rated.length)} could not be rated`, failure.reason);
    },
  });
  return { ...change, done };
}

async function undoRatings(kept: Kept, rated: readonly Rated[]): Promise<void> {
  const answers = await inTurn(rated, ({ rating }) => takeBack(rating.feedback_id, kept.within));
  showQualities(kept, succeeded(answers));
  const failed = answers.length - succeeded(answers).length;
  if (failed) throw new Error(`${several(failed)} still ${failed === 1 ? "has" : "have"} the rating`);
  notify("Ratings undone");
}

const AT_ONCE = 4;
/** Requests; the browser's own limit is 6, and other requests want their turn. */

async function inTurn<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<PromiseSettledResult<R>[]> {
  const results: PromiseSettledResult<R>[] = [];
  const waiting = items.values();
  const worker = async () => {
    for (const item of waiting) results.push(...(await Promise.allSettled([work(item)])));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results;
}

function succeeded<R>(answers: readonly PromiseSettledResult<R>[]): readonly R[] {
  return answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []));
}

type Verb = "tag" | "untag" | "delete" | "restore";

function send(verb: Verb, within: string, body: { readonly ids: readonly string[]; readonly tag?: string }): Promise<Changed> {
  return call<Changed>(`/api/memories:${verb}`, { method: "POST", body, within });
}

/** Says what an undo took back; where that is nothing, it failed. */
function tellUndone(said: string, { changed, missing }: Changed): void {
  if (changed.length === 0) throw new Error("the memory has changed since, or no longer exists");
  notify(missing.length ? `${said}, except for ${several(missing.length)} that changed in the meantime` : said);
}

/** Gives memories a tag; the undo takes it from those that did not have it before. */
export function useTag() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async ({ ids, tag }: { readonly ids: readonly string[]; readonly tag: string }) => {
      const kept = { client, within: workspace() };
      return { kept, ...(await send("tag", kept.within, { ids, tag })) };
    },
    onSuccess: ({ kept, changed, missing }, { tag }) => {
      showTags(kept, changed, (tags) => [...tags, tag]);
      const undo = async () => {
        const undone = await send("untag", kept.within, { ids: changed, tag });
        showTags(kept, undone.changed, (tags) => tags.filter((one) => one !== tag));
        tellUndone("Tag removed", undone);
      };
      const left = missing.length ? `; ${several(missing.length)} already had the tag or cannot have more tags` : "";
      notify(`${several(changed.length)} tagged ${tag}${left}`, changed.length ? undo : undefined);
    },
    onError: (error) => notifyFailure("Nothing was tagged", error),
  });
}

function showTags(kept: Kept, ids: readonly string[], change: (tags: readonly string[]) => readonly string[]): void {
  changeNodes(kept, ids, (node) => ({ ...node, tags: change(node.tags) }));
  for (const name of ["facets", "memories", "memory", "search"]) void kept.client.invalidateQueries({ queryKey: [kept.within, name] });
}

const DONE = { delete: "deleted", restore: "restored", release: "released" } as const;
export type Deed = keyof typeof DONE;

/** Takes memories out, or brings them back; each is the other's undo. */
export function useChange(deed: Deed) {
  const client = useQueryClient();
  const verb = deed === "delete" ? "delete" : "restore";
  const back = verb === "delete" ? "restore" : "delete";
  return useMutation({
    mutationFn: async (ids: readonly string[]) => {
      const kept = { client, within: workspace() };
      return { kept, ...(await send(verb, kept.within, { ids })) };
    },
    onSuccess: ({ kept, changed, missing }) => {
      const putBack = verb === "delete" ? dropNodes(kept, changed) : undefined;
      const undo = async () => {
        const undone = await send(back, kept.within, { ids: changed });
        putBack?.(undone.changed);
        void refreshAll(kept);
        tellUndone("Change undone", undone);
      };
      const left = missing.length ? `; ${several(missing.length)} could not be ${DONE[deed]}` : "";
      notify(`${several(changed.length)} ${DONE[deed]}${left}`, changed.length ? undo : undefined);
      return refreshAll(kept);
    },
    onError: (error) => notifyFailure(`Nothing was ${DONE[deed]}`, error),
  });
}

function several(count: number): string {
  return count === 1 ? "1 memory" : `${whole(count)} memories`;
}

function refreshAll({ client, within }: Kept): Promise<void> {
  return client.invalidateQueries({ queryKey: [within] });
}

function showQualities(kept: Kept, rated: readonly Rated[]): void {
  const qualities = new Map(rated.map(({ rating, quality }) => [rating.memory_id, quality]));
  changeNodes(kept, [...qualities.keys()], (node) => ({ ...node, quality: qualities.get(node.id) ?? node.quality }));
  for (const name of ["ratings", "memory", "memories", "review", "search"]) {
    void kept.client.invalidateQueries({ queryKey: [kept.within, name] });
  }
}

function refreshJudgement({ client, within }: Kept, id: string): void {
  void client.invalidateQueries({ queryKey: [within, "ratings", id] });
  void client.invalidateQueries({ queryKey: [within, "memory", id] });
  void client.invalidateQueries({ queryKey: [within, "review"] });
}

type Pages = { readonly pages: readonly MemoryPage[] };

function pagesOf({ client, within }: Kept): readonly MemoryPage[] {
  return client.getQueriesData<Pages>({ queryKey: [within, "memories"] }).flatMap(([, data]) => data?.pages ?? []);
}

function listed(kept: Kept, id: string): Memory | undefined {
  return pagesOf(kept).flatMap((page) => page.memories).find((memory) => memory.id === id);
}

function qualityOf(kept: Kept, id: string): number | undefined {
  const open = kept.client.getQueryData<Memory>([kept.within, "memory", id]);
  return (open ?? listed(kept, id) ?? nodeOf(kept, id))?.quality;
}

function showQuality(kept: Kept, id: string, quality: number): void {
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
