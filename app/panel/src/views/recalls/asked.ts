/** The recalls that the address asks for, and the way from one to the Ask view. */

import type { RecallFilters } from "../../api/recalls";
import type { Filters, Recall } from "../../api/types";
import { linkTo } from "../../state/address";

export const OUTCOMES = [
  { value: "", label: "Any outcome" },
  { value: "empty", label: "Found nothing" },
  { value: "degraded", label: "Degraded" },
] as const;
export const MODES = ["hybrid", "lexical", "vector"] as const;

export interface Asked {
  readonly filters: RecallFilters;
  readonly open: string | null;
}

export function readAsked(params: URLSearchParams): Asked {
  const value = (name: string) => params.get(name) ?? "";
  const one = (name: string, known: readonly string[]) => (known.includes(value(name)) ? value(name) : "");
  return {
    filters: {
      text: value("q").trim(),
      agent: value("agent"),
      run_id: value("run_id"),
      mode: one("mode", MODES),
      purpose: value("purpose"),
      outcome: one("outcome", ["empty", "degraded"]),
    },
    open: params.get("recall"),
  };
}

interface Parameters {
  readonly k?: number;
  readonly preset?: string;
  readonly budget_tokens?: number | null;
  readonly weights?: { readonly relevance?: number; readonly quality?: number } | null;
  readonly filters?: Filters | null;
}

/** Ask with the query, agent and parameters of a recall; not with its run, which would be given the hits again. */
export function askAgain({ query, agent, parameters }: Recall): string {
  const { k, preset, budget_tokens, weights, filters } = parameters as Parameters;
  const text = (value: number | null | undefined) => (value === null || value === undefined ? null : String(value));
  return linkTo("/ask", {
    q: query,
    agent: agent ?? null,
    preset: preset ?? null,
    k: text(k),
    budget: text(budget_tokens),
    relevance: text(weights?.relevance),
    quality: text(weights?.quality),
    kind: filters?.kinds ?? [],
    tag: filters?.tags ?? [],
    task_type: filters?.task_types ?? [],
    verdict: filters?.verdicts ?? [],
    source: filters?.source || null,
    since: filters?.since?.slice(0, 10) ?? null,
    until: lastDay(filters?.until),
    min_quality: text(filters?.min_quality),
    max_quality: text(filters?.max_quality),
    min_score: text(filters?.min_score),
    max_score: text(filters?.max_score),
  });
}

/** The last day that is included: the service's end is the moment after it. */
function lastDay(until: string | null | undefined): string | null {
  return until ? new Date(Date.parse(until) - 1).toISOString().slice(0, 10) : null;
}
