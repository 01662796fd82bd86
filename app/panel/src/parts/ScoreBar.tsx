import { sum } from "d3-array";
import { scaleLinear } from "d3-scale";
import { component, DEFAULT_WEIGHTS, type Explain, PARTS, partsOf, type Weights } from "./components";
import { decimal } from "./format";
import { Legend } from "./Legend";

interface Props {
  readonly explain: Explain;
  readonly weights?: Weights;
  /** The score that fills the bar. */
  readonly most: number;
}

const HEIGHT = 8;
const GAP = 0.3;
const LEAST = 0.0005;
/** A smaller part is 0.000 in the three digits that are shown. */

/** A score as a stacked bar of its parts; what ratings and age took from it stands empty at its end. */
export function ScoreBar({ explain, weights = DEFAULT_WEIGHTS, most }: Props) {
  const values = partsOf(explain, weights);
  const shown = PARTS.map((part) => ({ ...part, value: values[part.name] })).filter(({ value }) => Math.abs(value) >= LEAST);
  const width = scaleLinear([0, most || 1], [0, 100]).clamp(true);
  const gains = shown.filter(({ value }) => value > 0);
  const losses = shown.filter(({ value }) => value < 0);
  const score = Math.max(0, sum(shown, ({ value }) => value));
  const said = shown.map(({ label, value }) => `${label} ${decimal(value, 3)}`).join(", ");
  let at = 0;
  let lost = score;
  return (
    <svg className="score-bar" viewBox={`0 0 100 ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={`Score components: ${said}`}>
      {gains.map(({ name, label, value }) => {
        const from = at;
        at += width(value);
        return (
          <rect key={name} className={`part-${name}`} x={from} width={Math.max(0, at - from - GAP)} height={HEIGHT}>
            <title>{`${label}: ${decimal(value, 3)}`}</title>
          </rect>
        );
      })}
      {losses.map(({ name, label, value }) => {
        const from = width(lost);
        lost -= value;
        return (
          <rect key={name} className={`lost part-${name}`} x={from} width={Math.max(0, width(lost) - from)} height={HEIGHT}>
            <title>{`${label}: ${decimal(value, 3)}`}</title>
          </rect>
        );
      })}
    </svg>
  );
}

export function ScoreLegend() {
  return <Legend label="Score components" entries={PARTS.map(({ name, label }) => ({ colour: `part-${name}`, label }))} />;
}

const NUMBERS = [
  ["score", "Score"],
  ["relevance", "Relevance"],
  ["evidence", "Evidence"],
  ["lexical", "Words (BM25)"],
  ["vector", "Meaning (vectors)"],
  ["neighbours", "Neighbours"],
  ["source", "Source"],
  ["named", "Title in the query"],
  ["links", "Links"],
  ["dated", "Time in the query"],
  ["phrases", "Phrases"],
  ["time", "Time in the text"],
  ["own", "First person"],
  ["turn", "Question or answer"],
  ["short", "Short turn"],
  ["reranker", "Re-ranker"],
  ["qual_weight", "Evaluator's score (0 to 1)"],
  ["q_adjust", "× Ratings"],
  ["recency", "× Recency"],
  ["role", "+ Role"],
  ["influence", "+ Effect on later runs"],
  ["place", "+ Place in a report"],
  ["state", "State of the case"],
] as const;

/** The same in numbers, as far as they are known. */
export function ScoreNumbers({ explain }: { readonly explain: Explain }) {
  return (
    <dl className="numbers">
      {NUMBERS.map(([name, label]) => {
        const value = component(explain, name);
        return (
          value !== null && (
            <div key={name}>
              <dt>{label}</dt>
              <dd>{decimal(value, 3)}</dd>
            </div>
          )
        );
      })}
    </dl>
  );
}
