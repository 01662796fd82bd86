/** The cues that the address asks for. */

import type { CueFilters } from "../../api/cues";
import { capitalised } from "../../parts/format";

export const KINDS = ["correction", "preference", "precedent", "procedure", "decision", "discovery", "negative_result"] as const;
export const STATES = ["active", "proposed", "retired", "superseded"] as const;

export interface Asked {
  readonly filters: CueFilters;
  readonly open: string | null;
}

export function readAsked(params: URLSearchParams): Asked {
  const value = (name: string) => params.get(name)?.trim() ?? "";
  const one = (name: string, known: readonly string[]) => (known.includes(value(name)) ? value(name) : "");
  return {
    filters: {
      text: value("q"),
      kind: one("kind", KINDS),
      state: one("state", STATES),
      action_type: value("action_type"),
      session: value("session"),
    },
    open: params.get("cue"),
  };
}

/** A kind, or the name of a field, as words. */
export function kindName(kind: string): string {
  return kind.replaceAll("_", " ");
}

export function heading(name: string): string {
  return capitalised(kindName(name));
}
