/** A session, with its turns, cues and artifacts. */

import { useQuery } from "@tanstack/react-query";
import { call, workspace } from "./client";
import type { Session } from "./types";

/** The id may be a path, whose slashes are part of the address. */
export function useSession(id: string) {
  const within = workspace();
  return useQuery({
    queryKey: [within, "session", id],
    queryFn: ({ signal }) => call<Session>(`/api/sessions/${id.split("/").map(encodeURIComponent).join("/")}`, { signal, within }),
  });
}
