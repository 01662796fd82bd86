/** Links between memories. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { notify, notifyFailure } from "../state/notices";
import { call, workspace } from "./client";
import { passing } from "./passing";
import type { LinkEnds, Links } from "./types";

const FRESH_MILLISECONDS = 30_000;
/** A pointer comes back to where it was. */

/** The links of one memory; nothing is asked while it is none. */
export function useLinks(id: string | null) {
  const within = workspace();
  return useQuery({
    queryKey: [within, "links", id],
    queryFn: ({ signal }) => passing<Links>(id ?? "", "/links", { signal, within }),
    enabled: id !== null,
    staleTime: FRESH_MILLISECONDS,
  });
}

/** Adds a link or removes it; an undo does the opposite. */
export function useLinking(change: "add" | "remove") {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (link: LinkEnds & { readonly weight: number }) => {
      const within = workspace();
      await send(change, link, within);
      return { within, link };
    },
    onSuccess: ({ within, link }) => {
      const refresh = () => client.invalidateQueries({ queryKey: [within, "links"] });
      const undo = async () => {
        await send(change === "add" ? "remove" : "add", link, within);
        await refresh();
      };
      notify(change === "add" ? "Link added" : "Link removed", undo);
      return refresh();
    },
    onError: (error) => notifyFailure(change === "add" ? "The link could not be added" : "The link could not be removed", error),
  });
}

function send(change: "add" | "remove", { weight, ...ends }: LinkEnds & { readonly weight: number }, within: string): Promise<unknown> {
  if (change === "remove") return call("/api/links:delete", { method: "POST", body: ends, within });
  return call("/api/links", { method: "POST", body: { links: [{ ...ends, weight }] }, within });
}
