/** What cues, their kinds and their fields are called, the same in every view. */

import type { Cue } from "../../../api/schema";
import { capitalised, times } from "../../../parts/format";

export const KINDS = ["correction", "preference", "precedent", "procedure", "decision", "discovery", "negative_result"] as const;

export const SCOPES: Readonly<Record<string, string>> = { project: "this project", user: "this user's projects" };

/** A kind, or the name of a field, as words. */
export function kindName(kind: string): string {
  return kind.replaceAll("_", " ");
}

export function heading(name: string): string {
  return capitalised(kindName(name));
}

export function Kind({ kind }: { readonly kind: string }) {
  return <span className={`cue-kind ${kind}`}>{kindName(kind)}</span>;
}

export function Counts({ cue: { fired, heeded, ignored } }: { readonly cue: Pick<Cue, "fired" | "heeded" | "ignored"> }) {
  if (fired === 0) return <span>never fired</span>;
  const outcomes = [heeded > 0 && `heeded ${times(heeded)}`, ignored > 0 && `ignored ${times(ignored)}`].filter(Boolean);
  return <span>{[`fired ${times(fired)}`, ...outcomes].join(", ")}</span>;
}
