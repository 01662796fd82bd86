/** The signs of a memory's judgement, the same everywhere. An empty one keeps its place in a row. */

import { signed } from "./format";
import { Icon } from "./Icon";

interface QualityProps {
  readonly value: number;
  /** Shows a quality of 0 too, as beside the buttons that change it. */
  readonly always?: boolean;
}

export function Quality({ value, always = false }: QualityProps) {
  if (value === 0 && !always) return <span className="quality none" />;
  const tone = value > 0 ? "good" : value < 0 ? "bad" : "none";
  return (
    <span className={`quality ${tone}`} title={`Quality ${signed(value)}: the sum of the ratings, limited to −3 to +3`}>
      <span className="visually-hidden">quality </span>
      {value !== 0 && <Icon name={value > 0 ? "up" : "down"} />}
      {signed(value)}
    </span>
  );
}

export function Score({ value }: { readonly value: number | null | undefined }) {
  if (value === null || value === undefined) return <span className="score none" />;
  return (
    <span className={`score ${toneOf(value)}`} title={`Evaluator's score: ${value.toFixed(1)} out of 10`}>
      <span className="visually-hidden">score </span>
      {value.toFixed(1)}
    </span>
  );
}

const PASSED = 7;
const MIDDLING = 5;

/** Scores of 7 and more pass; the score's weight is halved below. */
function toneOf(score: number): "good" | "middling" | "bad" {
  return score >= PASSED ? "good" : score >= MIDDLING ? "middling" : "bad";
}

export function Verdict({ value }: { readonly value: string | null | undefined }) {
  if (!value) return null;
  return <span className="verdict">{value}</span>;
}
