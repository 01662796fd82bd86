/** Queries for the service as a whole: histories as agents get them, status and ingestions. */

import { queryOptions, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { call, keptWithin, query, workspace } from "./client";
import type { History, HistoryInput, Ingestion, Status, Tenant } from "./types";

const REFRESH_MILLISECONDS = 10_000;
const INGESTIONS = 20;
/** At once: each names the files that it changed. */

/** Each is logged as a recall, like an agent's: it is asked once, and again only when somebody says so. */
export function useHistory(asked: HistoryInput) {
  const within = workspace();
  return useQuery({
    queryKey: [within, "history", asked],
    queryFn: ({ signal }) => call<History>("/api/history", { method: "POST", body: asked, signal, within }),
    enabled: asked.query !== "",
    placeholderData: keptWithin(within),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** All workspaces. The list is the same in each; a change in one may make it. */
export function useWorkspaces() {
  return useQuery({
    queryKey: [workspace(), "workspaces"],
    queryFn: ({ signal }) => call<readonly Tenant[]>("/api/workspaces", { signal, within: "" }),
  });
}

/** The workspace of the address if it does not exist; else an empty name. */
export function useUnknownWorkspace(): string {
  const named = workspace();
  const all = useWorkspaces().data;
  return named !== "" && all && !all.some(({ name }) => name === named) ? named : "";
}

function statusWithin(within: string) {
  return queryOptions({
    queryKey: [within, "status"],
    queryFn: ({ signal }) => call<Status>("/api/status", { signal, within }),
  });
}

export function useStatus(every: number = REFRESH_MILLISECONDS) {
  return useQuery({ ...statusWithin(workspace()), refetchInterval: every });
}

/** The name before each of the evaluator's issues among the facts; not asked for while nothing looks like one. */
export function useEvaluator(wanted: boolean) {
  return useQuery({
    ...statusWithin(workspace()),
    select: (status) => status.evaluator,
    staleTime: Number.POSITIVE_INFINITY,
    enabled: wanted,
  });
}

export function useIngestions(onlyFailed: boolean) {
  const within = workspace();
  return useInfiniteQuery({
    queryKey: [within, "ingestions", onlyFailed],
    queryFn: ({ pageParam, signal }) => {
      const asked = { limit: INGESTIONS, before: pageParam, failed: onlyFailed ? "true" : "" };
      return call<readonly Ingestion[]>(`/api/ingestions${query(asked)}`, { signal, within });
    },
    initialPageParam: "",
    getNextPageParam: (last) => (last.length === INGESTIONS ? last.at(-1)?.id : undefined),
    placeholderData: keptWithin(within),
    refetchInterval: REFRESH_MILLISECONDS,
  });
}
