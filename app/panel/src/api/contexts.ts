/** Compiled contexts: made, read again, and compared. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { notifyFailure } from "../state/notices";
import { ApiError, call, keptWithin, query, workspace } from "./client";
import type { Context, ContextDifference, ContextInput, ContextSummary } from "./types";

const LATEST = 50;
/** Contexts from which the one to compare with is chosen. */
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;

function contextPath(id: string, rest = ""): string {
  if (!UUID.test(id)) throw new ApiError(404, "there is no such context");
  return `/api/contexts/${id}${rest}`;
}

/** Makes and stores a context, as an agent's request does. */
export function useMakeContext() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (asked: ContextInput) => {
      const within = workspace();
      return { within, context: await call<Context>("/api/contexts", { method: "POST", body: asked, within }) };
    },
    onSuccess: ({ within, context }) => {
      client.setQueryData([within, "context", context.id], context);
      void client.invalidateQueries({ queryKey: [within, "contexts"] });
    },
    onError: (error) => notifyFailure("No context was made", error),
  });
}

/** A stored context never changes. */
export function useContext(id: string) {
  const within = workspace();
  return useQuery({
    queryKey: [within, "context", id],
    queryFn: ({ signal }) => call<Context>(contextPath(id), { signal, within }),
    staleTime: Number.POSITIVE_INFINITY,
    enabled: id !== "",
    placeholderData: keptWithin(within),
  });
}

/** The latest contexts, without their parts. */
export function useContexts() {
  const within = workspace();
  return useQuery({
    queryKey: [within, "contexts"],
    queryFn: ({ signal }) => call<readonly ContextSummary[]>(`/api/contexts${query({ limit: LATEST })}`, { signal, within }),
  });
}

/** The way from one context to another. */
export function useDifference(id: string, other: string) {
  const within = workspace();
  return useQuery({
    queryKey: [within, "difference", id, other],
    queryFn: ({ signal }) => call<ContextDifference>(contextPath(id, `/diff/${encodeURIComponent(other)}`), { signal, within }),
    staleTime: Number.POSITIVE_INFINITY,
  });
}
