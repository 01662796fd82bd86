/** Queries for memories. */

import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { call, keptWithin, memoryPath, query, workspace } from "./client";
import { passing } from "./passing";
import { listed } from "./shown";
import type {
  Candidate, Facets, Filters, Memory, MemoryPage, MemoryUses, Rating, ReviewCounts, Same, SearchAnswer, SearchInput, UserPage,
} from "./types";

export const PAGE = 50;
export const FOUND = 50;
/** Hits of a search: a page of them, because later hits are seldom relevant. */

export interface Listing {
  readonly filters: Filters;
  readonly user: string | null;
  readonly sort: string;
  readonly order: string;
}

export function useMemories({ filters, user, sort, order }: Listing, enabled: boolean) {
  const within = workspace();
  return useInfiniteQuery({
    queryKey: [within, "memories", filters, user, sort, order],
    queryFn: ({ pageParam, signal }) => {
      const { kinds, tags, task_types, verdicts, ...rest } = filters;
      const lists = { kind: kinds, tag: tags, task_type: task_types, verdict: verdicts };
      const asked = { ...rest, ...lists, ...(user === null ? {} : { user }), sort, order, limit: PAGE, cursor: pageParam };
      return call<MemoryPage>(`/api/memories${query(asked)}`, { signal, within });
    },
    initialPageParam: "",
    getNextPageParam: (last) => last.next,
    placeholderData: keptWithin(within),
    enabled,
  });
}

/** Logged as a recall, like an agent's: it is asked once, and again only after a change. */
export function useSearch(text: string, filters: Filters, user: string | null = null) {
  const within = workspace();
  return useQuery({
    queryKey: [within, "search", text, filters, user],
    queryFn: ({ signal }) => {
      const body: SearchInput = { query: text, k: FOUND, filters, agent: "panel", trial: true, user: user ?? "" };
      return call<SearchAnswer>("/api/search", { method: "POST", body, signal, within });
    },
    placeholderData: keptWithin(within),
    // A degraded answer is asked for again when the reader comes back to it.
    staleTime: ({ state }) => (state.data?.degraded.length ? 0 : Number.POSITIVE_INFINITY),
    enabled: text !== "",
  });
}

/** The first hundred users, each with the number of their memories. */
export function useUsers() {
  const within = workspace();
  return useQuery({
    queryKey: [within, "users"],
    queryFn: ({ signal }) => call<UserPage>("/api/users", { signal, within }),
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

/** The memory and all that says the same. */
export function useSame(id: string, phrase: string) {
  const within = workspace();
  return useQuery({
    queryKey: [within, "same", id, phrase],
    queryFn: ({ signal }) => call<Same>(memoryPath(id, `/same${query({ phrase })}`), { signal, within }),
  });
}

export function useReviewCounts() {
  const within = workspace();
  return useQuery({
    queryKey: [within, "review", "counts"],
    queryFn: ({ signal }) => call<ReviewCounts>("/api/memories/review-counts", { signal, within }),
  });
}

const REVIEWED = 200;

/** A list to review, page after page. */
function useReviewList<T>(list: string, enabled = true) {
  const within = workspace();
  return useInfiniteQuery({
    queryKey: [within, "review", list],
    queryFn: ({ pageParam, signal }) =>
      call<readonly T[]>(`/api/memories/${list}${query({ limit: REVIEWED, offset: pageParam })}`, { signal, within }),
    initialPageParam: 0,
    getNextPageParam: (last, pages) => (last.length === REVIEWED ? pages.length * REVIEWED : null),
    placeholderData: keptWithin(within),
    enabled,
  });
}

export function usePruneCandidates() {
  return useReviewList<Candidate>("prune-candidates");
}

/** Memories that are out of every answer, and suspect ones, which no history shows. */
export function useHeldBack(state: "quarantined" | "suspect" | "deleted" | "superseded", enabled = true) {
  return useReviewList<Memory>(state, enabled);
}
