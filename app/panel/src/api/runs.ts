import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { call, keptWithin, query, workspace } from "./client";
import type { RunPage, RunPoint, RunStory } from "./types";

const PAGE = 200;
/** Runs that are loaded: the table sorts and searches them without another request. */
export const MOST_RUNS = 2000;

/** The latest runs; pages follow each other until there are enough. */
export function useRuns() {
  const within = workspace();
  const found = useInfiniteQuery({
    queryKey: [within, "runs"],
    queryFn: ({ pageParam, signal }) => call<RunPage>(`/api/runs${query({ limit: PAGE, cursor: pageParam })}`, { signal, within }),
    initialPageParam: "",
    getNextPageParam: (last, pages) => (pages.length * PAGE < MOST_RUNS ? last.next : null),
    placeholderData: keptWithin(within),
  });
  const { hasNextPage, isFetching, isError, fetchNextPage } = found;
  useEffect(() => {
    if (hasNextPage && !isFetching && !isError) void fetchNextPage();
  }, [hasNextPage, isFetching, isError, fetchNextPage]);
  return found;
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
