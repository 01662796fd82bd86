import { scaleLinear } from "d3-scale";
import { component, DEFAULT_WEIGHTS, type Explain, PARTS, partsOf, type Weights } from "./components";

interface Props {
  readonly explain: Explain;
  readonly weights?: Weights;
  /** The score that fills the bar. */
  readonly most: number;
}

const HEIGHT = 8;
const GAP = 0.3;

/** A score as a stacked bar of what it is made of. */
export function ScoreBar({ explain, weights = DEFAULT_WEIGHTS, most }: Props) {
  const parts = partsOf(explain, weights);
  const width = scaleLinear([0, most || 1], [0, 100]).clamp(true);
  let at = 0;
  const said = PARTS.map(({ name, label }) => `${label} ${parts[name].toFixed(3)}`).join(", ");
  return (
    <svg className="score-bar" viewBox={`0 0 100 ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={`Made of ${said}`}>
      {PARTS.map(({ name, label }) => {
        const from = at;
        at += width(parts[name]);
        return (
          <rect key={name} className={`part-${name}`} x={from} width={Math.max(0, at - from - GAP)} height={HEIGHT}>
            <title>{`${label}: ${parts[name].toFixed(3)}`}</title>
          </rect>
        );
      })}
    </svg>
  );
}

export function ScoreLegend() {
  return (
    <ul className="legend" aria-label="What a score is made of">
      {PARTS.map(({ name, label }) => (
        <li key={name}>
          <svg className="swatch" viewBox="0 0 10 10" width="10" height="10" aria-hidden>
            <rect className={`part-${name}`} width="10" height="10" rx="2" />
          </svg>
          {label}
        </li>
      ))}
    </ul>
  );
}

const NUMBERS = [
  ["score", "score"],
  ["relevance", "relevance"],
  ["evidence", "evidence"],
  ["lexical", "words"],
  ["vector", "meaning"],
  ["neighbours", "neighbours"],
  ["source", "source"],
  ["named", "named"],
  ["links", "links"],
  ["dated", "dated"],
  ["phrases", "phrases"],
  ["time", "tells a time"],
  ["own", "tells of itself"],
  ["turn", "question or answer"],
  ["reranker", "re-ranker"],
  ["qual_weight", "quality weight"],
  ["q_adjust", "× ratings"],
  ["recency", "× recency"],
] as const;

/** The same in numbers. */
export function ScoreNumbers({ explain }: { readonly explain: Explain }) {
  return (
    <dl className="numbers">
      {NUMBERS.map(([name, label]) => (
        <div key={name}>
          <dt>{label}</dt>
          <dd>{component(explain, name)?.toFixed(3) ?? "–"}</dd>
        </div>
      ))}
    </dl>
  );
}
