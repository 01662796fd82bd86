/** The map of memories: asked for, and drawn anew. */

import { useMutation } from "@tanstack/react-query";
import { answerOf, useService } from "../../../api/client";
import { KEPT } from "../../../api/queries";
import type { Filters, GraphView } from "../../../api/schema";
import { useDebounced } from "../../../state/debounced";
import { notifyFailure } from "../../../state/notices";

export const MOST = 4000;
/** Memories of a map, as the service limits them. */
const LACKING = 0.1;
/** Share of them that a stored map may lack, because they are newer than it. */
const WAITING_MILLISECONDS = 5_000;
/** Between looks for memories that have no vector yet, as those have that were just restored. */
const STORED_MILLISECONDS = 700;
/** In which a stored map is answered; later than that, a sketch is asked for. */
const FRESH_MILLISECONDS = 60_000;
/** A map is large, and what is done here is shown without asking again. */

/** The map of all kinds; of the one that the filters let pass where a map has no room for all memories. */
export function useGraph({ kinds }: Filters) {
  const [kind = "", ...others] = kinds ?? [];
  const every = useMapOf("");
  return useMapOf(isFull(every.data) && others.length === 0 ? kind : "");
}

export function isFull(graph: GraphView | undefined): boolean {
  return (graph?.nodes.length ?? 0) > MOST * (1 - LACKING);
}

/** The stored map; until it is first drawn, a sketch of it, whose places are rough. */
function useMapOf(kind: NonNullable<Filters["kinds"]>[number] | "") {
  const { ask, cache, useQuery, queryOptions } = useService();
  const query = { kind, limit: MOST };
  const drawn = useQuery(
    "get",
    "/api/graph",
    { params: { query } },
    { ...KEPT, staleTime: FRESH_MILLISECONDS, refetchInterval: ({ state }) => (state.data?.reason ? WAITING_MILLISECONDS : false) },
  );
  const late = useDebounced(drawn.isPending && kind, STORED_MILLISECONDS) === kind;
  const sketch = useQuery("get", "/api/graph", { params: { query: { ...query, sketch: true } } }, { enabled: drawn.isPending && late });
  const redraw = useMutation({
    mutationFn: () => answerOf(ask.GET("/api/graph", { params: { query: { ...query, refresh: true } } })),
    onSuccess: (graph) => cache.setQueryData(queryOptions("get", "/api/graph", { params: { query } }).queryKey, graph),
    onError: (error) => notifyFailure("The map could not be redrawn", error),
  });
  const working = redraw.isPending || drawn.isPending || drawn.isPlaceholderData;
  return { ...drawn, data: drawn.data ?? sketch.data, redraw: redraw.mutate, working };
}
