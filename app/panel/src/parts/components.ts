/** A hit's score taken apart into what it is a sum of (benchmarks/retrieval.md). */

import type { HitLink } from "../api/types";

export type Explain = Readonly<Record<string, number | null | HitLink>>;

/** A component of the score; null where it has none. */
export function component(explain: Explain, name: string): number | null {
  const value = explain[name];
  return typeof value === "number" ? value : null;
}

/** The link that brought the hit, or lifted it. */
export function linkOf({ link }: Explain): HitLink | null {
  return typeof link === "object" ? link : null;
}

export interface Weights {
  readonly relevance: number;
  readonly quality: number;
}

export const DEFAULT_WEIGHTS: Weights = { relevance: 0.7, quality: 0.3 };

export const PARTS = [
  { name: "words", label: "Words (BM25)" },
  { name: "meaning", label: "Meaning (vectors)" },
  { name: "neighbours", label: "Neighbours in the source" },
  { name: "source", label: "Other hits from the source" },
  { name: "named", label: "Title in the query" },
  { name: "links", label: "Links" },
  { name: "dated", label: "Time in the query" },
  { name: "text", label: "Text features" },
  { name: "quality", label: "Evaluator's score" },
  { name: "unscored", label: "No evaluator's score weighed (0.5 instead)" },
  { name: "ratings", label: "Ratings" },
  { name: "recency", label: "Recency" },
  { name: "role", label: "Role of the agent" },
  { name: "influence", label: "Effect on later runs" },
  { name: "place", label: "Place in a report" },
  { name: "state", label: "State of the case" },
] as const;

export type Part = (typeof PARTS)[number]["name"];

const UNSCORED = 0.5;
/** The weight of a memory without an evaluator's score; no score has this weight, because those below 7 are halved. */

/** score = (w_rel · relevance + w_qual · qual_weight) · q_adjust · recency + role + place, and relevance is made of the
 * evidence. The note of a case's issues that stands first has only the part `state`. */
export function partsOf(explain: Explain, weights: Weights = DEFAULT_WEIGHTS): Readonly<Record<Part, number>> {
  const value = (name: string) => component(explain, name) ?? 0;
  const factor = (name: string) => component(explain, name) ?? 1;
  const evidence = value("evidence");
  // Features of the text may speak against a hit; then the other parts are smaller by as much.
  const text = value("phrases") + value("time") + value("own") + value("turn") + value("short");
  const total = Math.max(evidence, evidence - text);
  const each = evidence > 0 ? (weights.relevance * value("relevance")) / total : 0;
  const share = lexicalShare(value("lexical"), value("vector"), value("fused"));
  const quality = weights.quality * value("qual_weight");
  const relevance = evidence > 0 ? weights.relevance * value("relevance") : 0;
  const base = relevance + quality;
  const scored = value("qual_weight") !== UNSCORED;
  return {
    words: each * value("fused") * share,
    meaning: each * value("fused") * (1 - share),
    neighbours: each * value("neighbours"),
    source: each * value("source"),
    named: each * value("named"),
    links: each * value("links"),
    dated: each * value("dated"),
    text: each * Math.max(0, text),
    quality: scored ? quality : 0,
    unscored: scored ? 0 : quality,
    ratings: base * (factor("q_adjust") - 1),
    recency: base * factor("q_adjust") * (factor("recency") - 1),
    role: value("role"),
    influence: value("influence"),
    place: value("place"),
    state: value("state"),
  };
}

/** The length of a hit's bar: its score and what was taken from it. */
export function lengthOf(explain: Explain, weights: Weights = DEFAULT_WEIGHTS): number {
  return Object.values(partsOf(explain, weights)).reduce((sum, part) => sum + Math.max(0, part), 0);
}

/** Returns the share of words in the fused score. The answer does not contain the mix, so it follows from the parts. */
function lexicalShare(lexical: number, vector: number, fused: number): number {
  if (lexical + vector === 0) return 0;
  const mix = lexical === vector ? 0.5 : (fused - vector) / (lexical - vector);
  if (fused === 0 || mix < -0.001 || mix > 1.001) return lexical / (lexical + vector);
  return Math.max(0, Math.min(1, (mix * lexical) / fused));
}
