/** What is asked of the service as a whole: histories as agents get them, and how it does. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { call, workspace } from "./client";
import type { History, HistoryInput, Ingestion, Status } from "./types";

const REFRESH_MILLISECONDS = 10_000;

/** Each is logged as a recall, like an agent's: it is asked once, and again only when somebody says so. */
export function useHistory(asked: HistoryInput) {
  return useQuery({
    queryKey: [workspace(), "history", asked],
    queryFn: ({ signal }) => call<History>("/api/history", { method: "POST", body: asked, signal }),
    enabled: asked.query !== "",
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export function useStatus() {
  return useQuery({
    queryKey: [workspace(), "status"],
    queryFn: ({ signal }) => call<Status>("/api/status", { signal }),
    refetchInterval: REFRESH_MILLISECONDS,
  });
}

export function useIngestions() {
  return useQuery({
    queryKey: [workspace(), "ingestions"],
    queryFn: ({ signal }) => call<readonly Ingestion[]>("/api/ingestions", { signal }),
    refetchInterval: REFRESH_MILLISECONDS,
  });
}
