/** What the views ask of memories, and what they change. */

import {
  keepPreviousData, type QueryClient, useInfiniteQuery, useMutation, useQuery, useQueryClient,
} from "@tanstack/react-query";
import { useState } from "react";
import { notify, notifyFailure } from "../state/notices";
import { call, query, workspace } from "./client";
import { changeNodes, dropNodes, nodeOf } from "./graph";
import { rest } from "./passing";
import type {
  Candidate, Changed, Facets, Filters, Memory, MemoryPage, MemoryUses, Rated, Rating, SearchAnswer, SearchInput,
} from "./types";

export const PAGE = 50;
const FOUND = 50;
/** As many hits as a page: what is further down is not what was searched for. */

export interface Listing {
  readonly filters: Filters;
  readonly sort: string;
  readonly order: string;
}

export function useMemories({ filters, sort, order }: Listing, enabled: boolean) {
  return useInfiniteQuery({
    queryKey: [workspace(), "memories", filters, sort, order],
    queryFn: ({ pageParam, signal }) => {
      const { kinds, tags, task_types, verdicts, ...rest } = filters;
      const lists = { kind: kinds, tag: tags, task_type: task_types, verdict: verdicts };
      const asked = { ...rest, ...lists, sort, order, limit: PAGE, cursor: pageParam };
      return call<MemoryPage>(`/api/memories${query(asked)}`, { signal });
    },
    initialPageParam: "",
    getNextPageParam: (last) => last.next,
    placeholderData: keepPreviousData,
    enabled,
  });
}

export function useSearch(text: string, filters: Filters) {
  return useQuery({
    queryKey: [workspace(), "search", text, filters],
    queryFn: ({ signal }) => {
      const body: SearchInput = { query: text, k: FOUND, filters, agent: "panel" };
      return call<SearchAnswer>("/api/search", { method: "POST", body, signal });
    },
    placeholderData: keepPreviousData,
    enabled: text !== "",
  });
}

export function useFacets() {
  return useQuery({
    queryKey: [workspace(), "facets"],
    queryFn: ({ signal }) => call<Facets>("/api/memories/facets", { signal }),
  });
}

export function useMemory(id: string) {
  const client = useQueryClient();
  const known = listed(client, id);
  return useQuery<Memory>({
    queryKey: [workspace(), "memory", id],
    queryFn: ({ signal }) => rest(id, signal).then(() => call<Memory>(`/api/memories/${id}`, { signal })),
    ...(known ? { placeholderData: known } : {}),
  });
}

export function useNeighbours(memory: Memory) {
  return useQuery({
    queryKey: [workspace(), "neighbours", memory.id],
    queryFn: ({ signal }) => rest(memory.id, signal).then(() => call<readonly Memory[]>(`/api/memories/${memory.id}/neighbours`, { signal })),
    enabled: memory.source !== null && memory.ordinal !== null,
  });
}

export function useRatings(id: string) {
  return useQuery({
    queryKey: [workspace(), "ratings", id],
    queryFn: ({ signal }) => rest(id, signal).then(() => call<readonly Rating[]>(`/api/memories/${id}/feedback`, { signal })),
  });
}

export function useUses(id: string) {
  return useQuery({
    queryKey: [workspace(), "uses", id],
    queryFn: ({ signal }) => rest(id, signal).then(() => call<MemoryUses>(`/api/memories/${id}/runs`, { signal })),
  });
}

export function usePruneCandidates() {
  return useQuery({
    queryKey: [workspace(), "review", "prune"],
    queryFn: ({ signal }) => call<readonly Candidate[]>("/api/memories/prune-candidates", { signal }),
  });
}

/** Memories that are out of every answer. */
export function useRetired(state: "quarantined" | "deleted") {
  return useQuery({
    queryKey: [workspace(), "review", state],
    queryFn: ({ signal }) => call<readonly Memory[]>(`/api/memories/${state}`, { signal }),
  });
}

interface Judgement {
  readonly id: string;
  readonly rating: 1 | -1;
  readonly comment: string;
}

function sendRating({ id, rating, comment }: Judgement): Promise<Rated> {
  return call<Rated>(`/api/memories/${id}/feedback`, {
    method: "POST",
    body: { rating, comment },
    headers: { "Idempotency-Key": crypto.randomUUID() },
  });
}

function takeBack(feedback: string): Promise<Rated> {
  return call<Rated>(`/api/feedback/${feedback}`, { method: "DELETE" });
}

function within(quality: number): number {
  return Math.max(-3, Math.min(3, quality));
}

/** Shows the quality that a rating will lead to; the one before it. */
function expectQuality(client: QueryClient, id: string, rating: number): number | undefined {
  const before = qualityOf(client, id);
  if (before !== undefined) showQuality(client, id, within(before + rating));
  return before;
}

/** A rating is shown before the service has it, and taken back on screen if the service refuses it. */
export function useRate() {
  const client = useQueryClient();
  const undo = useUndoRating();
  return useMutation({
    mutationFn: sendRating,
    onMutate: ({ id, rating }) => expectQuality(client, id, rating),
    onSuccess: ({ rating, quality }) => {
      showQuality(client, rating.memory_id, quality);
      const said = rating.rating > 0 ? "Rated up" : "Rated down";
      notify(said, () => undo.mutateAsync(rating.feedback_id));
    },
    onError: (error, { id }, before) => {
      if (before !== undefined) showQuality(client, id, before);
      notifyFailure("The rating was not taken", error);
    },
    onSettled: (_answer, _error, { id }) => refreshJudgement(client, id),
  });
}

export function useUndoRating() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: takeBack,
    onSuccess: ({ rating, quality }) => {
      showQuality(client, rating.memory_id, quality);
      notify("The rating is taken back");
      refreshJudgement(client, rating.memory_id);
    },
    onError: (error) => notifyFailure("The rating was not taken back", error),
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
  const undo = async (rated: readonly Rated[]) => {
    const answers = await inTurn(rated, ({ rating }) => takeBack(rating.feedback_id));
    showQualities(client, succeeded(answers));
    const failed = answers.length - succeeded(answers).length;
    if (failed) throw new Error(`${several(failed)} kept the rating`);
    notify("The ratings are taken back");
  };
  const change = useMutation({
    mutationFn: async ({ ids, rating }: ManyRated) => {
      setDone(0);
      changeNodes(client, ids, (node) => ({ ...node, quality: within(node.quality + rating) }));
      return inTurn(ids, (id) =>
        sendRating({ id, rating, comment: "" }).finally(() => setDone((count) => count + 1)),
      );
    },
    onSuccess: (answers, { rating }) => {
      const rated = succeeded(answers);
      showQualities(client, rated);
      if (rated.length) notify(`${several(rated.length)} rated ${rating > 0 ? "up" : "down"}`, () => undo(rated));
      const failure = answers.find((answer) => answer.status === "rejected");
      if (!failure) return;
      void client.invalidateQueries({ queryKey: [workspace(), "graph"] });
      notifyFailure(`${several(answers.length - rated.length)} could not be rated`, failure.reason);
    },
  });
  return { ...change, done };
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

/** Gives memories a tag; the undo takes it from those that did not have it before. */
export function useTag() {
  const client = useQueryClient();
  const send = (verb: "tag" | "untag", ids: readonly string[], tag: string) =>
    call<Changed>(`/api/memories:${verb}`, { method: "POST", body: { ids, tag } });
  const shown = (ids: readonly string[], change: (tags: readonly string[]) => readonly string[]) => {
    changeNodes(client, ids, (node) => ({ ...node, tags: change(node.tags) }));
    for (const name of ["facets", "memories", "memory"]) void client.invalidateQueries({ queryKey: [workspace(), name] });
  };
  return useMutation({
    mutationFn: ({ ids, tag }: { readonly ids: readonly string[]; readonly tag: string }) => send("tag", ids, tag),
    onSuccess: ({ changed, missing }, { tag }) => {
      shown(changed, (tags) => [...tags, tag]);
      const undo = async () => {
        await send("untag", changed, tag);
        shown(changed, (tags) => tags.filter((one) => one !== tag));
        notify("The tag is taken back");
      };
      const left = missing.length ? `; ${several(missing.length)} had it or can take no more` : "";
      notify(`${several(changed.length)} tagged ${tag}${left}`, changed.length ? undo : undefined);
    },
    onError: (error) => notifyFailure("Nothing was tagged", error),
  });
}

const DONE = { delete: "deleted", restore: "restored", release: "released" } as const;
export type Deed = keyof typeof DONE;

/** Takes memories out, or brings them back; each is the other's undo. */
export function useChange(deed: Deed) {
  const client = useQueryClient();
  const verb = deed === "delete" ? "delete" : "restore";
  const back = verb === "delete" ? "restore" : "delete";
  const send = (what: string, ids: readonly string[]) =>
    call<Changed>(`/api/memories:${what}`, { method: "POST", body: { ids } });
  return useMutation({
    mutationFn: (ids: readonly string[]) => send(verb, ids),
    onSuccess: ({ changed, missing }) => {
      const putBack = verb === "delete" ? dropNodes(client, changed) : undefined;
      const undo = async () => {
        await send(back, changed);
        putBack?.();
        notify("Undone");
        await refreshAll(client);
      };
      const left = missing.length ? `; ${missing.length} could not be` : "";
      notify(`${several(changed.length)} ${DONE[deed]}${left}`, changed.length ? undo : undefined);
      return refreshAll(client);
    },
    onError: (error) => notifyFailure(`Nothing was ${DONE[deed]}`, error),
  });
}

function several(count: number): string {
  return count === 1 ? "1 memory" : `${count} memories`;
}

function refreshAll(client: QueryClient): Promise<void> {
  return client.invalidateQueries({ queryKey: [workspace()] });
}

function showQualities(client: QueryClient, rated: readonly Rated[]): void {
  const qualities = new Map(rated.map(({ rating, quality }) => [rating.memory_id, quality]));
  changeNodes(client, [...qualities.keys()], (node) => ({ ...node, quality: qualities.get(node.id) ?? node.quality }));
  for (const name of ["ratings", "memory", "memories", "review"]) {
    void client.invalidateQueries({ queryKey: [workspace(), name] });
  }
}

function refreshJudgement(client: QueryClient, id: string): void {
  void client.invalidateQueries({ queryKey: [workspace(), "ratings", id] });
  void client.invalidateQueries({ queryKey: [workspace(), "memory", id] });
  void client.invalidateQueries({ queryKey: [workspace(), "review"] });
}

type Pages = { readonly pages: readonly MemoryPage[] };

function pagesOf(client: QueryClient): readonly MemoryPage[] {
  return client.getQueriesData<Pages>({ queryKey: [workspace(), "memories"] }).flatMap(([, data]) => data?.pages ?? []);
}

function listed(client: QueryClient, id: string): Memory | undefined {
  return pagesOf(client).flatMap((page) => page.memories).find((memory) => memory.id === id);
}

function qualityOf(client: QueryClient, id: string): number | undefined {
  return client.getQueryData<Memory>([workspace(), "memory", id])?.quality ?? (listed(client, id) ?? nodeOf(client, id))?.quality;
}

function showQuality(client: QueryClient, id: string, quality: number): void {
  const shown = <T extends { readonly id: string }>(item: T): T => (item.id === id ? { ...item, quality } : item);
  client.setQueryData<Memory>([workspace(), "memory", id], (memory) => memory && shown(memory));
  client.setQueriesData<Pages>({ queryKey: [workspace(), "memories"] }, (data) =>
    data && { ...data, pages: data.pages.map((page) => ({ ...page, memories: page.memories.map(shown) })) },
  );
  changeNodes(client, [id], (node) => ({ ...node, quality }));
  client.setQueriesData<SearchAnswer>({ queryKey: [workspace(), "search"] }, (data) =>
    data && { ...data, hits: data.hits.map(shown) },
  );
}
