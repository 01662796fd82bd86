/** What several views ask, or page after page. */

import { type InfiniteData, keepPreviousData, type UseInfiniteQueryResult, useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";
import { answerOf, everywhere, useService } from "./client";
import { copiesOf } from "./copies";
import type { Cue, Filters, MemoryView, SearchView } from "./schema";

/** Keeps the last answer on the page while another question is answered. */
export const KEPT = { placeholderData: keepPreviousData } as const;
/** Asked once, and again only after a change or when somebody says so. */
export const ONCE = { ...KEPT, staleTime: Number.POSITIVE_INFINITY } as const;

/** The pages of a list that names the next one. */
const PAGED = { ...KEPT, initialPageParam: "", getNextPageParam: (last: { readonly next: string | null }) => last.next };

export const MOST_FOUND = 200;
/** Hits that the service answers for a search. */
const ENDED = `A search answers its best ${MOST_FOUND}: other words or a filter lead to the rest.`;
const EQUAL = "Of matches with the same text or title, one is shown.";
const PAGE = 50;
const RUNS = 200;
const REVIEWED = 200;
/** Items of a page. */
const REFRESH_MILLISECONDS = 10_000;

/** Until the service answers, the copy that a list has. */
export function useMemory(id: string) {
  const { useQuery, cache } = useService();
  const known = () => copiesOf<MemoryView>(cache, new Set([id])).find((copy) => "created_at" in copy && "metadata" in copy);
  return useQuery("get", "/api/memories/{memory_id}", { params: { path: { memory_id: id } } }, { placeholderData: known });
}

export interface Listing {
  readonly filters: Filters;
  /** Whose memories are shown; null for everyone's. */
  readonly user: string | null;
  readonly sort: "created" | "occurred" | "score" | "quality";
  readonly order: "asc" | "desc";
}

function memoriesOf({ filters, user, sort, order }: Listing) {
  const { kinds = null, tags = null, task_types = null, verdicts = null, ...rest } = filters;
  const lists = { kind: kinds, tag: tags, task_type: task_types, verdict: verdicts };
  return { ...rest, ...lists, user, sort, order, limit: PAGE };
}

export function useMemories(listing: Listing, enabled: boolean) {
  return useService().useInfiniteQuery("get", "/api/memories", { params: { query: memoriesOf(listing) } }, { ...PAGED, enabled });
}

/** A trial, and no agent's recall. Each page asks for more hits; those that are on the page keep their places. */
export function useSearch(text: string, filters: Filters, user: string | null = null, first = PAGE) {
  const { ask } = useService();
  const asked = { query: text, filters, agent: "panel", trial: true, user: user ?? "" };
  return useInfiniteQuery({
    ...KEPT,
    queryKey: ["post", "/api/search", asked, first],
    queryFn: ({ pageParam: k, signal }) => answerOf(ask.POST("/api/search", { body: { ...asked, k }, signal })),
    initialPageParam: first,
    getNextPageParam: ({ hits }, _pages, k) => nextOf(hits.length, k),
    select: allFound,
    // A degraded answer is asked for again when the reader comes back to it.
    staleTime: ({ state }) => (state.data?.pages[0]?.degraded.length ? 0 : Number.POSITIVE_INFINITY),
    enabled: text !== "",
  });
}

/** A short page may lack matches that say what others say: the next asks for the most, which looks at more of them. */
const nextOf = (found: number, k: number) => (found && k < MOST_FOUND ? (found < k ? MOST_FOUND : k + PAGE) : undefined);

/** All hits, each once; `more` tells if there may be others, and `end` what is said where there is no further page. */
function allFound({ pages, pageParams }: InfiniteData<SearchView>) {
  const hits = [...new Map(pages.flatMap((page) => page.hits.map((hit) => [hit.id, hit]))).values()];
  const [last = 0, k = 0] = [pages.at(-1)?.hits.length, pageParams.at(-1) as number];
  return { ...(pages[0] as SearchView), hits, more: last === k || nextOf(last, k) !== undefined, end: last < k ? EQUAL : ENDED };
}

export type Found = ReturnType<typeof useSearch>;

export function useFacets() {
  return useService().useQuery("get", "/api/memories/facets");
}

/** The neighbours, links and runs of one memory. */
export function useAround(id: string) {
  const params = { path: { memory_id: id } };
  return useService().useQuery("get", "/api/memories/{memory_id}/around", { params }, { staleTime: 30_000 });
}

/** Memories that are out of every answer, suspect ones, which no history shows, and those to prune. */
export function useHeldBack(state: "quarantined" | "suspect" | "prune" | "deleted" | "superseded", enabled = true) {
  const query = { state, limit: REVIEWED };
  return useService().useInfiniteQuery("get", "/api/memories", { params: { query } }, { ...PAGED, enabled });
}

/** What agents asked and got nothing for: in one run, or in all. */
export function useEmptyRecalls(run = "") {
  return useService().useInfiniteQuery(
    "get",
    "/api/recalls",
    { params: { query: { run_id: run, outcome: "empty", limit: PAGE } } },
    {
      ...KEPT,
      pageParamName: "before",
      initialPageParam: "",
      getNextPageParam: (last) => (last.length === PAGE ? last.at(-1)?.recall_id : undefined),
    },
  );
}

/** All runs, page after page: the table sorts and searches them without another request. */
export function useRuns() {
  const found = useService().useInfiniteQuery("get", "/api/runs", { params: { query: { limit: RUNS } } }, PAGED);
  useAllPages(found);
  return found;
}

/** Fetches page after page until there is no further one. */
function useAllPages({ hasNextPage, isFetching, isError, fetchNextPage }: UseInfiniteQueryResult): void {
  useEffect(() => {
    if (hasNextPage && !isFetching && !isError) void fetchNextPage();
  }, [hasNextPage, isFetching, isError, fetchNextPage]);
}

/** The cues that wait for a decision, by their ids. */
export function useProposedCues(): ReadonlyMap<string, Cue> {
  const found = useService().useInfiniteQuery("get", "/api/cues", { params: { query: { state: ["proposed"], limit: REVIEWED } } }, PAGED);
  useAllPages(found);
  return useMemo(() => new Map(found.data?.pages.flatMap(({ cues }) => cues.map((cue) => [cue.id, cue]))), [found.data]);
}

export function useRun(id: string) {
  return useService().useQuery("get", "/api/runs/{run_id}", { params: { path: { run_id: id } } }, { enabled: id !== "" });
}

/** What memory did to later runs. */
export function useEffectReport() {
  return useService().useQuery("get", "/api/effect", {}, KEPT);
}

export function useStatus() {
  return useService().useQuery("get", "/api/status", {}, { refetchInterval: REFRESH_MILLISECONDS });
}

/** Asked again every so many milliseconds, if that is said. */
export function useWorkspaces(every: number | false = false) {
  return everywhere.useQuery("get", "/api/workspaces", {}, { refetchInterval: every }, everywhere.cache);
}

/** The workspace of the address if it does not exist; else an empty name. */
export function useUnknownWorkspace(): string {
  const { workspace } = useService();
  const all = useWorkspaces().data;
  return workspace !== "" && all && !all.some(({ name }) => name === workspace) ? workspace : "";
}
