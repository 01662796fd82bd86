/** What memories are linked with. */

import { useQuery } from "@tanstack/react-query";
import { call, workspace } from "./client";
import { rest } from "./passing";
import type { Links } from "./types";

const FRESH_MILLISECONDS = 30_000;
/** A pointer comes back to where it was. */

/** The links of one memory; nothing is asked while it is none. */
export function useLinks(id: string | null) {
  return useQuery({
    queryKey: [workspace(), "links", id],
    queryFn: ({ signal }) => rest(id ?? "", signal).then(() => call<Links>(`/api/memories/${id}/links`, { signal })),
    enabled: id !== null,
    staleTime: FRESH_MILLISECONDS,
  });
}
