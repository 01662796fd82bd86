/** What memories are linked with. */

import { useQuery } from "@tanstack/react-query";
import { call, memoryPath, workspace } from "./client";
import { rest } from "./passing";
import type { Links } from "./types";

const FRESH_MILLISECONDS = 30_000;
/** A pointer comes back to where it was. */

/** The links of one memory; nothing is asked while it is none. */
export function useLinks(id: string | null) {
  const within = workspace();
  return useQuery({
    queryKey: [within, "links", id],
    queryFn: ({ signal }) => rest(id ?? "", signal).then(() => call<Links>(memoryPath(id ?? "", "/links"), { signal, within })),
    enabled: id !== null,
    staleTime: FRESH_MILLISECONDS,
  });
}
