/** The state of the map in the address. */

import type { Filters } from "../../../api/schema";
import type { Changes } from "../../../state/address";
import { KINDS, readFilters } from "../filters";
import { COLOURINGS, type Colouring } from "./marks";

export const LIMITS = [600, 1000, 2500, 4000] as const;
const MOST = 4000;

/** From a moment to another, which is not included, in milliseconds. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

export interface Asked {
  readonly question: { readonly kind: "" | (typeof KINDS)[number]; readonly limit: number };
  readonly colouring: Colouring;
  /** Clusters that alone are shown; every one where this is empty. */
  readonly clusters: ReadonlySet<number>;
  readonly span: Span | null;
  readonly memory: string | null;
  /** Memories that match this text are shown alone; all where it is empty. */
  readonly text: string;
}

export function readAsked(params: URLSearchParams): Asked {
  const [kind, ...others] = params.getAll("kind");
  const limit = Number(params.get("limit") ?? LIMITS[0]);
  return {
    question: {
      kind: (others.length === 0 && KINDS.find((name) => name === kind)) || "",
      limit: Number.isInteger(limit) && limit >= 1 && limit <= MOST ? limit : LIMITS[0],
    },
    colouring: COLOURINGS.find((name) => name === params.get("colour")) ?? "cluster",
    clusters: new Set(params.getAll("cluster").map(Number).filter(Number.isInteger)),
    span: readSpan(readFilters(params)),
    memory: params.get("memory"),
    text: (params.get("q") ?? "").trim(),
  };
}

const EVER = 8.64e15;
/** The last moment that a date has, in milliseconds. */

/** The span of the list's filters, which may have one end alone. */
function readSpan({ since, until }: Filters): Span | null {
  if (!since && !until) return null;
  const from = since ? Date.parse(since) : -EVER;
  const to = until ? Date.parse(until) : EVER;
  return from < to ? { from, to } : null;
}

export function spanChanges(span: Span | null): Changes {
  if (!span) return { since: null, until: null };
  return { since: new Date(span.from).toISOString(), until: new Date(span.to).toISOString() };
}
