import type { HitLink, RecallView, ScoreParts } from "../api/schema";
import { decimal } from "./format";
import { Legend } from "./Legend";
import { HitHead } from "./MemoryLink";
import { Facts } from "./pane";

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

/** The length of a hit's bar: its score and what was taken from it. */
export function lengthOf(parts: ScoreParts): number {
  return Object.values(parts).reduce((sum, part) => sum + Math.max(0, part), 0);
}

function shownOf(parts: ScoreParts) {
  return PARTS.map((part) => ({ ...part, value: parts[part.name] ?? 0 })).filter(({ value }) => Math.abs(value) >= LEAST);
}

interface Props {
  readonly parts: ScoreParts;
  /** The score that fills the bar. */
  readonly most: number;
}

/** A score as a stacked bar of its parts, which the service adds up; what ratings and age took stands empty at its end. */
export function ScoreBar({ parts, most }: Props) {
  const shown = shownOf(parts);
  const width = (value: number) => Math.min(100, (Math.max(0, value) * 100) / (most || 1));
  const score = shown.reduce((sum, { value }) => sum + value, 0);
  let at = 0;
  let lost = score;
  return (
    <svg
      className="score-bar"
      viewBox={`0 0 100 ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`Score components: ${shown.map(({ label, value }) => `${label} ${decimal(value, 3)}`).join(", ")}`}
    >
      {shown.map(({ name, label, value }) => {
        const [from, to] = value > 0 ? [at, at + value] : [lost, lost - value];
        if (value > 0) at = to;
        else lost = to;
        const start = width(from);
        return (
          <rect
            key={name}
            className={value > 0 ? `part-${name}` : `lost part-${name}`}
            x={start}
            width={Math.max(0, width(to) - start - (value > 0 ? GAP : 0))}
            height={HEIGHT}
          >
            <title>{`${label}: ${decimal(value, 3)}`}</title>
          </rect>
        );
      })}
    </svg>
  );
}

/** The names of the colours; of the parts of one score, or of all. */
export function ScoreLegend({ parts }: { readonly parts?: ScoreParts }) {
  const shown = parts ? shownOf(parts) : PARTS;
  return <Legend label="Score components" entries={shown.map(({ name, label }) => ({ colour: `part-${name}`, label }))} />;
}

/** The same in numbers: the parts with their sum, then what they were made of. */
export function ScoreNumbers({ score, parts, explain }: { readonly score: number; readonly parts: ScoreParts; readonly explain: Explain }) {
  const made = Object.entries(explain).filter((one): one is [string, number] => typeof one[1] === "number" && one[0] !== "score");
  return (
    <>
      <Facts
        className="numbers"
        facts={[...shownOf(parts).map(({ label, value }) => [label, decimal(value, 3)] as const), ["Score", decimal(score, 3)]]}
      />
      {made.length > 0 && (
        <Facts className="numbers muted" facts={made.map(([name, value]) => [name.replaceAll("_", " "), decimal(value, 3)])} />
      )}
    </>
  );
}

type GivenHit = RecallView["hits"][number];

/** The hits of a recall as they were given, with their scores. */
export function GivenHits({ hits }: { readonly hits: readonly GivenHit[] }) {
  const most = lengthOfAll(hits);
  return (
    <ol className="hits">
      {hits.map((hit) => (
        <GivenLine key={hit.rank} hit={hit} most={most} />
      ))}
    </ol>
  );
}

/** The length that fills the bars of these hits. */
export function lengthOfAll(hits: readonly Pick<GivenHit, "parts">[]): number {
  return Math.max(0.01, ...hits.map(({ parts }) => lengthOf(parts)));
}

/** Says if the score of a hit is known. */
export function isScored({ explain }: Pick<GivenHit, "explain">): boolean {
  return Object.keys(explain).length > 0;
}

function GivenLine({ hit, most }: { readonly hit: GivenHit; readonly most: number }) {
  const scored = isScored(hit);
  return (
    <li>
      <HitHead id={hit.id} title={hit.title}>
        <span className="match">{scored && decimal(hit.score, 3)}</span>
      </HitHead>
      {scored && (
        <>
          <ScoreBar parts={hit.parts} most={most} />
          <details>
            <summary>Components</summary>
            <ScoreNumbers score={hit.score} parts={hit.parts} explain={hit.explain} />
          </details>
        </>
      )}
    </li>
  );
}
