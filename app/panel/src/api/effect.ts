/** What memory did to later runs: the report, its documents, and the setting that uses the estimates. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { notifyFailure } from "../state/notices";
import { call, keptWithin, query, workspace } from "./client";
import type { Effect } from "./types";

export interface Period {
  readonly since: string;
  readonly task_type: string;
}

export function useEffectReport(period: Period) {
  const within = workspace();
  return useQuery({
    queryKey: [within, "effect", period],
    queryFn: ({ signal }) => call<Effect>(`/api/effect${query({ ...period })}`, { signal, within }),
    placeholderData: keptWithin(within),
  });
}

const TYPES = { markdown: "text/markdown", html: "text/html" };

/** Saves the report as a file. */
export function useEffectExport(period: Period) {
  return useMutation({
    mutationFn: (format: keyof typeof TYPES) =>
      call<{ readonly text: string }>(`/api/effect/export${query({ ...period, format })}`).then(({ text }) => save(text, format)),
    onError: (error) => notifyFailure("The report was not saved", error),
  });
}

function save(text: string, format: keyof typeof TYPES): void {
  const href = URL.createObjectURL(new Blob([text], { type: TYPES[format] }));
  const link = document.createElement("a");
  link.href = href;
  link.download = `effect.${format === "html" ? "html" : "md"}`;
  link.click();
  URL.revokeObjectURL(href);
}

/** Lets the estimated effects count in the ranking of the workspace, or not. */
export function useEffectUse() {
  const client = useQueryClient();
  const within = workspace();
  return useMutation({
    mutationFn: (on: boolean) => call("/api/settings", { method: "PATCH", body: { uses_effects: on }, within }),
    onSuccess: () => client.invalidateQueries({ queryKey: [within] }),
    onError: (error) => notifyFailure("The setting was not changed", error),
  });
}
