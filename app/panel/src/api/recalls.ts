/** The log of what agents asked, and what they got. */

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { call, keptWithin, query, workspace } from "./client";
import type { Recall, RecallDay, RecallSummary } from "./types";

const PAGE = 50;
const TREND_DAYS = 30;

export interface RecallFilters {
  readonly text: string;
  readonly agent: string;
  readonly run_id: string;
  readonly mode: string;
  readonly purpose: string;
  /** `empty` or `degraded`; all where it is empty. */
  readonly outcome: string;
}

export function useRecalls({ text, ...filters }: RecallFilters, limit = PAGE) {
  const within = workspace();
  return useInfiniteQuery({
    queryKey: [within, "recalls", text, filters, limit],
    queryFn: ({ pageParam, signal }) =>
      call<readonly RecallSummary[]>(`/api/recalls${query({ text, ...filters, limit, before: pageParam })}`, { signal, within }),
    initialPageParam: "",
    getNextPageParam: (last) => (last.length === limit ? last.at(-1)?.recall_id : undefined),
    placeholderData: keptWithin(within),
  });
}

export function useRecall(id: string) {
  const within = workspace();
  return useQuery({
    queryKey: [within, "recall", id],
    queryFn: ({ signal }) => call<Recall>(`/api/recalls/${encodeURIComponent(id)}`, { signal, within }),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** The latest days, each with its number of recalls and the shares of those that failed their reader. */
export function useRecallTrends() {
  const within = workspace();
  return useQuery({
    queryKey: [within, "recalls", "trends"],
    queryFn: ({ signal }) => call<readonly RecallDay[]>(`/api/recalls:trends${query({ days: TREND_DAYS })}`, { signal, within }),
  });
}
