import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { call, keptWithin, query, workspace } from "./client";
import type { RunPage, RunPoint, RunStory } from "./types";

const PAGE = 50;

export interface RunFilters {
  readonly task_type: string;
  readonly verdict: string;
  readonly agent: string;
}

export function useRuns(filters: RunFilters) {
  const within = workspace();
  return useInfiniteQuery({
    queryKey: [within, "runs", filters],
    queryFn: ({ pageParam, signal }) =>
      call<RunPage>(`/api/runs${query({ ...filters, limit: PAGE, cursor: pageParam })}`, { signal, within }),
    initialPageParam: "",
    getNextPageParam: (last) => last.next,
    placeholderData: keptWithin(within),
  });
}

export function useScores() {
  const within = workspace();
  return useQuery({
    queryKey: [within, "scores"],
    queryFn: ({ signal }) => call<readonly RunPoint[]>("/api/runs:scores", { signal, within }),
  });
}

export function useRun(id: string) {
  const within = workspace();
  return useQuery({
    queryKey: [within, "run", id],
    queryFn: ({ signal }) => call<RunStory>(`/api/runs/${encodeURIComponent(id)}`, { signal, within }),
  });
}
