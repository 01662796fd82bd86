/** The map of memories: asked for, drawn anew, and kept in step with what people do to its memories. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { notifyFailure } from "../state/notices";
import { call, type Kept, keptWithin, query, workspace } from "./client";
import type { Graph, GraphNode } from "./types";

const WAITING_MILLISECONDS = 5_000;
/** Between looks for memories that have no vector yet, as those have that were just restored. */
const FRESH_MILLISECONDS = 60_000;
/** A map is large, and what is done here is shown without asking again. */

export interface MapQuestion {
  /** Empty: of every kind. */
  readonly kind: string;
  readonly limit: number;
}

export function useGraph(asked: MapQuestion) {
  const within = workspace();
  return useQuery({
    queryKey: keyOf(within, asked),
    queryFn: ({ signal }) => call<Graph>(pathOf(asked), { signal, within }),
    placeholderData: keptWithin(within),
    staleTime: FRESH_MILLISECONDS,
    refetchInterval: ({ state }) => (state.data?.reason ? WAITING_MILLISECONDS : false),
  });
}

/** Another map, though the stored one would do. */
export function useRedraw(asked: MapQuestion) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async () => {
      const within = workspace();
      return { key: keyOf(within, asked), graph: await call<Graph>(pathOf(asked, "true"), { within }) };
    },
    onSuccess: ({ key, graph }) => client.setQueryData<Graph>(key, graph),
    onError: (error) => notifyFailure("The map could not be redrawn", error),
  });
}

function keyOf(within: string, asked: MapQuestion) {
  return [within, "graph", asked] as const;
}

function pathOf({ kind, limit }: MapQuestion, refresh?: "true"): string {
  return `/api/graph${query({ kind, limit, refresh })}`;
}

/** Shows a change of some memories on every map at once. */
export function changeNodes(kept: Kept, ids: readonly string[], change: (node: GraphNode) => GraphNode): void {
  const changed = new Set(ids);
  changeMaps(kept, (graph) => ({
    ...graph,
    nodes: graph.nodes.map((node) => (changed.has(node.id) ? change(node) : node)),
  }));
}

/** Takes memories off every map; what is returned puts some of them back where they were. */
export function dropNodes(kept: Kept, ids: readonly string[]): (back: readonly string[]) => void {
  const dropped = new Set(ids);
  const before = kept.client.getQueriesData<Graph>({ queryKey: [kept.within, "graph"] });
  changeMaps(kept, (graph) => ({ ...graph, nodes: graph.nodes.filter((node) => !dropped.has(node.id)) }));
  return (back) => {
    const returned = new Set(back);
    for (const [key, old] of before) {
      const gone = old?.nodes.filter((node) => returned.has(node.id)) ?? [];
      kept.client.setQueryData<Graph>(key, (graph) => graph && withNodes(graph, gone));
    }
  };
}

function withNodes(graph: Graph, nodes: readonly GraphNode[]): Graph {
  const shown = new Set(graph.nodes.map((node) => node.id));
  return { ...graph, nodes: [...graph.nodes, ...nodes.filter((node) => !shown.has(node.id))] };
}

function changeMaps({ client, within }: Kept, change: (graph: Graph) => Graph): void {
  client.setQueriesData<Graph>({ queryKey: [within, "graph"] }, (graph) => graph && change(graph));
}

export function nodeOf({ client, within }: Kept, id: string): GraphNode | undefined {
  const maps = client.getQueriesData<Graph>({ queryKey: [within, "graph"] });
  return maps.flatMap(([, graph]) => graph?.nodes ?? []).find((node) => node.id === id);
}
