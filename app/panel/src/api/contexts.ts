/** Compiled contexts: made, and read again. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { notifyFailure } from "../state/notices";
import { ApiError, call, keptWithin, workspace } from "./client";
import type { Context, ContextInput } from "./types";

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;

function contextPath(id: string): string {
  if (!UUID.test(id)) throw new ApiError(404, "there is no such context");
  return `/api/contexts/${id}`;
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
