import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { call, keptWithin, query, workspace } from "./client";
import { notify, notifyFailure } from "../state/notices";
import type { ObservationState, RunPage, RunPoint, RunStory } from "./types";

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

/** Compressions of one output: so many fit side by side on a wide screen. */
const SAMPLES = 3;

/** Asks for several compressions of a run's output, and says why some could not be made. */
export function useSampling(run_id: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async () => {
      const within = workspace();
      const body = { run_id, samples: SAMPLES };
      return { within, state: await call<ObservationState>("/api/observations?wait=true", { method: "POST", body, within }) };
    },
    onSuccess: ({ within, state }) => {
      notify(state.shortfall || `${state.samples} samples are stored`);
      void client.invalidateQueries({ queryKey: [within] });
    },
    onError: (error) => notifyFailure("The samples could not be made", error),
  });
}

export function useRun(id: string) {
  const within = workspace();
  return useQuery({
    queryKey: [within, "run", id],
    queryFn: ({ signal }) => call<RunStory>(`/api/runs/${encodeURIComponent(id)}`, { signal, within }),
  });
}
