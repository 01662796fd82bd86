import type { ScoreParts } from "../api/schema";
import { decimal } from "./format";
import { HitHead } from "./MemoryLink";

const PARTS: readonly { readonly name: keyof ScoreParts; readonly label: string }[] = [
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
  { name: "other", label: "Not known in parts" },
];

const HEIGHT = 8;
const GAP = 0.3;
const LEAST = 0.0005;
/** A smaller part is 0.000 in the three digits that are shown. */

function shownOf(parts: ScoreParts) {
  return PARTS.map((part) => ({ ...part, value: parts[part.name] ?? 0 })).filter(({ value }) => Math.abs(value) >= LEAST);
}

interface Props {
  readonly parts: ScoreParts;
  /** The score that fills the bar. */
  readonly most: number;
}

/** A score as a stacked bar of its parts, which the service adds up; what ratings and age took stands empty at its end. */
function ScoreBar({ parts, most }: Props) {
  const shown = shownOf(parts);
  const width = (value: number) => Math.min(100, (Math.max(0, value) * 100) / (most || 1));
  let at = 0;
  let lost = shown.reduce((sum, { value }) => sum + value, 0);
  return (
    <svg
      className="score-bar"
      viewBox={`0 0 100 ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`Score components: ${shown.map(({ label, value }) => `${label} ${decimal(value, 3)}`).join(", ")}`}
    >
      {shown.map(({ name, value }) => {
        const [from, to] = value > 0 ? [at, at + value] : [lost, lost - value];
        if (value > 0) at = to;
        else lost = to;
        const start = width(from);
        const className = value > 0 ? `part-${name}` : `lost part-${name}`;
        return (
          <rect key={name} className={className} x={start} width={Math.max(0, width(to) - start - (value > 0 ? GAP : 0))} height={HEIGHT} />
        );
      })}
    </svg>
  );
}

/** What a score was made of: each part with its colour and its number, then the sum. */
function ScoreNumbers({ score, parts }: { readonly score: number; readonly parts: ScoreParts }) {
  return (
    <dl className="numbers">
      {shownOf(parts).map(({ name, label, value }) => (
        <div key={name}>
          <dt>
            <svg className="swatch" viewBox="0 0 10 10" width="10" height="10" aria-hidden>
              <rect className={`part-${name}`} width="10" height="10" rx="2" />
            </svg>{" "}
            {label}
          </dt>
          <dd>{decimal(value, 3)}</dd>
        </div>
      ))}
      <div>
        <dt>Score</dt>
        <dd>{decimal(score, 3)}</dd>
      </div>
    </dl>
  );
}

interface Hit {
  readonly id: string;
  readonly title: string;
  readonly score: number;
  readonly parts: ScoreParts;
  readonly explain: Readonly<Record<string, unknown>>;
}

/** The length that fills the bars of these hits: the longest score with what was taken from it. */
export function lengthOfAll(hits: readonly Pick<Hit, "parts">[]): number {
  const lengthOf = (parts: ScoreParts) => Object.values(parts).reduce((sum, part) => sum + Math.max(0, part), 0);
  return Math.max(0.01, ...hits.map(({ parts }) => lengthOf(parts)));
}

/** Says if a score is known: that of what another store answered is not. */
export function isScored(explain: Hit["explain"]): boolean {
  return Object.keys(explain).length > 0;
}

/** The bar of a hit with its numbers. */
export function Why({ hit: { score, parts }, most }: { readonly hit: Pick<Hit, "score" | "parts">; readonly most: number }) {
  return (
    <>
      <ScoreBar parts={parts} most={most} />
      <ScoreNumbers score={score} parts={parts} />
    </>
  );
}

/** Hits with their scores; the numbers are folded. */
export function Hits({ hits }: { readonly hits: readonly Hit[] }) {
  const most = lengthOfAll(hits);
  return (
    <ol className="hits">
      {hits.map(({ id, title, score, parts, explain }, place) => (
        <li key={place}>
          <HitHead id={id} title={title}>
            <span className="match">{isScored(explain) && decimal(score, 3)}</span>
          </HitHead>
          {isScored(explain) && (
            <>
              <ScoreBar parts={parts} most={most} />
              <details>
                <summary>Components</summary>
                <ScoreNumbers score={score} parts={parts} />
              </details>
            </>
          )}
        </li>
      ))}
    </ol>
  );
}
