import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { call, query, workspace } from "./client";
import type { RunPage, RunPoint, RunStory } from "./types";

const PAGE = 50;

export interface RunFilters {
  readonly task_type: string;
  readonly verdict: string;
  readonly agent: string;
}

export function useRuns(filters: RunFilters) {
  return useInfiniteQuery({
    queryKey: [workspace(), "runs", filters],
    queryFn: ({ pageParam, signal }) =>
      call<RunPage>(`/api/runs${query({ ...filters, limit: PAGE, cursor: pageParam })}`, { signal }),
    initialPageParam: "",
    getNextPageParam: (last) => last.next,
    placeholderData: keepPreviousData,
  });
}

export function useScores() {
  return useQuery({
    queryKey: [workspace(), "scores"],
    queryFn: ({ signal }) => call<readonly RunPoint[]>("/api/runs:scores", { signal }),
  });
}

export function useRun(id: string) {
  return useQuery({
    queryKey: [workspace(), "run", id],
    queryFn: ({ signal }) => call<RunStory>(`/api/runs/${encodeURIComponent(id)}`, { signal }),
  });
}
