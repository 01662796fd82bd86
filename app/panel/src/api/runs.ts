import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { call, keptWithin, query, workspace } from "./client";
import type { RunPage, RunStory } from "./types";

const PAGE = 200;

/** All runs, page after page: the table sorts and searches them without another request. */
export function useRuns() {
  const within = workspace();
  const found = useInfiniteQuery({
    queryKey: [within, "runs"],
    queryFn: ({ pageParam, signal }) => call<RunPage>(`/api/runs${query({ limit: PAGE, cursor: pageParam })}`, { signal, within }),
    initialPageParam: "",
    getNextPageParam: (last) => last.next,
    placeholderData: keptWithin(within),
  });
  const { hasNextPage, isFetching, isError, fetchNextPage } = found;
  useEffect(() => {
    if (hasNextPage && !isFetching && !isError) void fetchNextPage();
  }, [hasNextPage, isFetching, isError, fetchNextPage]);
  return found;
}

export function useRun(id: string) {
  const within = workspace();
  return useQuery({
    queryKey: [within, "run", id],
    queryFn: ({ signal }) => call<RunStory>(`/api/runs/${encodeURIComponent(id)}`, { signal, within }),
  });
}
