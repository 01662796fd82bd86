/** The map of memories: asked for, and drawn anew. */

import { useMutation } from "@tanstack/react-query";
import { answerOf, useService } from "../../../api/client";
import { KEPT } from "../../../api/queries";
import { notifyFailure } from "../../../state/notices";
import type { Asked } from "./asked";

const WAITING_MILLISECONDS = 5_000;
/** Between looks for memories that have no vector yet, as those have that were just restored. */
const FRESH_MILLISECONDS = 60_000;
/** A map is large, and what is done here is shown without asking again. */

export function useGraph(query: Asked["question"]) {
  return useService().useQuery(
    "get",
    "/api/graph",
    { params: { query } },
    { ...KEPT, staleTime: FRESH_MILLISECONDS, refetchInterval: ({ state }) => (state.data?.reason ? WAITING_MILLISECONDS : false) },
  );
}

/** Another map, though the stored one would do. */
export function useRedraw(query: Asked["question"]) {
  const { ask, cache, queryOptions } = useService();
  return useMutation({
    mutationFn: () => answerOf(ask.GET("/api/graph", { params: { query: { ...query, refresh: true } } })),
    onSuccess: (graph) => cache.setQueryData(queryOptions("get", "/api/graph", { params: { query } }).queryKey, graph),
    onError: (error) => notifyFailure("The map could not be redrawn", error),
  });
}
