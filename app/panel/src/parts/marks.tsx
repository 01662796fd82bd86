/** The small signs that stand for a memory's judgement, the same everywhere. */

import { signed } from "./format";
import { Icon } from "./Icon";

export function Quality({ value }: { readonly value: number }) {
  const tone = value > 0 ? "good" : value < 0 ? "bad" : "none";
  return (
    <span className={`quality ${tone}`} title={`Quality ${signed(value)}: the sum of the ratings, limited to −3 to +3`}>
      <span className="visually-hidden">quality </span>
      {value !== 0 && <Icon name={value > 0 ? "up" : "down"} />}
      {signed(value)}
    </span>
  );
}

export function Score({ value }: { readonly value: number | null }) {
  if (value === null) return <span className="score none" title="No evaluator's score">–</span>;
  const tone = value >= 7 ? "good" : value >= 5 ? "middling" : "bad";
  return (
    <span className={`score ${tone}`} title={`Evaluator's score: ${value.toFixed(1)} out of 10`}>
      <span className="visually-hidden">score </span>
      {value.toFixed(1)}
    </span>
  );
}

export function Verdict({ value }: { readonly value: string | null | undefined }) {
  if (!value) return null;
  return <span className="verdict">{value}</span>;
}
