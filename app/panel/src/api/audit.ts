/** Who changed what. */

import { useInfiniteQuery } from "@tanstack/react-query";
import { call, query, workspace } from "./client";
import type { AuditPage } from "./types";

const PAGE = 100;

export interface AuditQuestion {
  readonly who: string;
  /** An object that the entries name. */
  readonly id: string;
}

export function useAudit(asked: AuditQuestion) {
  const within = workspace();
  return useInfiniteQuery({
    queryKey: [within, "audit", asked],
    queryFn: ({ pageParam, signal }) => call<AuditPage>(`/api/audit${query({ ...asked, limit: PAGE, before: pageParam })}`, { signal, within }),
    initialPageParam: "",
    getNextPageParam: (last) => last.next,
  });
}
