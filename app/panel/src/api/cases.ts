/** Cases: what is judged again and again. */

import { useQuery } from "@tanstack/react-query";
import { call, keptWithin, workspace } from "./client";
import type { Case, CaseSummary } from "./types";

export function useCases() {
  const within = workspace();
  return useQuery({
    queryKey: [within, "cases"],
    queryFn: ({ signal }) => call<readonly CaseSummary[]>("/api/cases", { signal, within }),
    placeholderData: keptWithin(within),
  });
}

export function useCase(name: string) {
  const within = workspace();
  return useQuery({
    queryKey: [within, "case", name],
    queryFn: ({ signal }) => call<Case>(`/api/cases/${encodeURIComponent(name)}`, { signal, within }),
  });
}
