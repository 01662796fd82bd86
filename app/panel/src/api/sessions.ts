/** Sessions, and the turns, cues and artifacts of one. */

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { dayAfter, startOf } from "../parts/days";
import { call, keptWithin, query, workspace } from "./client";
import type { Session, SessionPage } from "./types";

const PAGE = 50;

export interface SessionFilters {
  readonly text: string;
  readonly since: string;
  readonly until: string;
  /** A file that its turns created or changed. */
  readonly path: string;
}

/** The sessions, the latest first. The text is a part of a title or an id. */
export function useSessions({ since, until, ...filters }: SessionFilters) {
  const within = workspace();
  return useInfiniteQuery({
    queryKey: [within, "sessions", filters, since, until],
    queryFn: ({ pageParam, signal }) => {
      const asked = { ...filters, since: since && startOf(since), until: until && dayAfter(until), limit: PAGE, cursor: pageParam };
      return call<SessionPage>(`/api/sessions${query(asked)}`, { signal, within });
    },
    initialPageParam: "",
    getNextPageParam: (last) => last.next,
    placeholderData: keptWithin(within),
  });
}

/** The id may be a path, whose slashes are part of the address. */
export function useSession(id: string) {
  const within = workspace();
  return useQuery({
    queryKey: [within, "session", id],
    queryFn: ({ signal }) => call<Session>(`/api/sessions/${id.split("/").map(encodeURIComponent).join("/")}`, { signal, within }),
  });
}
