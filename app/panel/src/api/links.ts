/** Links between memories. */

import { useQuery } from "@tanstack/react-query";
import { workspace } from "./client";
import { passing } from "./passing";
import type { Links } from "./types";

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
