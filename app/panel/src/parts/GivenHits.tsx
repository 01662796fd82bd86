import type { ScoreParts } from "../api/schema";
import { linkTo } from "../state/address";
import { decimal } from "./format";
import { Link } from "./Link";
import { Title } from "./Marked";
import { type Explain, lengthOf, ScoreBar, ScoreNumbers } from "./ScoreBar";

interface GivenHit {
  readonly id: string;
  readonly rank: number;
  /** Empty for a memory that is no longer stored. */
  readonly title: string;
  readonly score: number;
  /** Empty for a hit that was imported: its score is not known. */
  readonly explain: Explain;
  readonly parts: ScoreParts;
}

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
      <div className="hit-head">
        {hit.title === "" ? (
          <span className="muted">No longer stored</span>
        ) : (
          <Link className="row-title" href={linkTo("/memory", { memory: hit.id })}>
            <Title title={hit.title} />
          </Link>
        )}
        <span className="match">{scored && decimal(hit.score, 3)}</span>
      </div>
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
