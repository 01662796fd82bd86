/** The names of cues' kinds and fields, in words. */

import { capitalised } from "../../../parts/format";

export const KINDS = ["correction", "preference", "precedent", "procedure", "decision", "discovery", "negative_result"] as const;

export const SCOPES: Readonly<Record<string, string>> = { project: "this project", user: "this user's projects" };

/** A kind, or the name of a field, as words. */
export function kindName(kind: string): string {
  return kind.replaceAll("_", " ");
}

export function heading(name: string): string {
  return capitalised(kindName(name));
}
