/** The map of memories: asked for, and drawn anew. */

import { useMutation } from "@tanstack/react-query";
import { answerOf, useService } from "../../../api/client";
import { KEPT } from "../../../api/queries";
import { useDebounced } from "../../../state/debounced";
import { notifyFailure } from "../../../state/notices";
import type { Asked } from "./asked";

const WAITING_MILLISECONDS = 5_000;
/** Between looks for memories that have no vector yet, as those have that were just restored. */
const STORED_MILLISECONDS = 700;
/** In which a stored map is answered; later than that, a sketch is asked for. */
const FRESH_MILLISECONDS = 60_000;
/** A map is large, and what is done here is shown without asking again. */

/** The map; until the first one is drawn, a sketch of it, whose memories are where they differ most. */
export function useGraph(query: Asked["question"]) {
  const { useQuery } = useService();
  const drawn = useQuery(
    "get",
    "/api/graph",
    { params: { query } },
    { ...KEPT, staleTime: FRESH_MILLISECONDS, refetchInterval: ({ state }) => (state.data?.reason ? WAITING_MILLISECONDS : false) },
  );
  const late = useDebounced(drawn.isPending ? query : null, STORED_MILLISECONDS) === query;
  const sketch = useQuery("get", "/api/graph", { params: { query: { ...query, sketch: true } } }, { enabled: drawn.isPending && late });
  return { ...drawn, data: drawn.data ?? sketch.data };
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
