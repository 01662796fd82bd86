/** What is asked of the service as a whole: histories as agents get them, and how it does. */

import { useQuery } from "@tanstack/react-query";
import { call, keptWithin, workspace } from "./client";
import type { History, HistoryInput, Ingestion, Status } from "./types";

const REFRESH_MILLISECONDS = 10_000;

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

export function useStatus() {
  const within = workspace();
  return useQuery({
    queryKey: [within, "status"],
    queryFn: ({ signal }) => call<Status>("/api/status", { signal, within }),
    refetchInterval: REFRESH_MILLISECONDS,
  });
}

export function useIngestions() {
  const within = workspace();
  return useQuery({
    queryKey: [within, "ingestions"],
    queryFn: ({ signal }) => call<readonly Ingestion[]>("/api/ingestions", { signal, within }),
    refetchInterval: REFRESH_MILLISECONDS,
  });
}
