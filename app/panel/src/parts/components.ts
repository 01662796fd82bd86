/** A hit's score taken apart into what it is a sum of (docs/retrieval.md). */

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
  { name: "quality", label: "Evaluator's score (0.5 if none)" },
] as const;

export type Part = (typeof PARTS)[number]["name"];

/** score = (w_rel · relevance + w_qual · qual_weight) · q_adjust · recency, and relevance is made of the evidence. */
export function partsOf(explain: Explain, weights: Weights = DEFAULT_WEIGHTS): Readonly<Record<Part, number>> {
  const value = (name: string) => component(explain, name) ?? 0;
  const factor = value("q_adjust") * value("recency");
  const evidence = value("evidence");
  // What its text says is less than nothing for a question; then the other parts are smaller by as much.
  const text = value("phrases") + value("time") + value("own") + value("turn");
  const whole = Math.max(evidence, evidence - text);
  const each = evidence > 0 ? (weights.relevance * value("relevance") * factor) / whole : 0;
  const share = lexicalShare(value("lexical"), value("vector"), value("fused"));
  return {
    words: each * value("fused") * share,
    meaning: each * value("fused") * (1 - share),
    neighbours: each * value("neighbours"),
    source: each * value("source"),
    named: each * value("named"),
    links: each * value("links"),
    dated: each * value("dated"),
    text: each * Math.max(0, text),
    quality: weights.quality * value("qual_weight") * factor,
  };
}

/** Of the fused score, what words contribute: the mix is not in the answer, so it is taken from its parts. */
function lexicalShare(lexical: number, vector: number, fused: number): number {
  if (lexical + vector === 0) return 0;
  const mix = lexical === vector ? 0.5 : (fused - vector) / (lexical - vector);
  if (fused === 0 || mix < -0.001 || mix > 1.001) return lexical / (lexical + vector);
  return Math.max(0, Math.min(1, (mix * lexical) / fused));
}
