import { max } from "d3-array";
import { linkTo } from "../state/address";
import { type Explain, lengthOf } from "./components";
import { decimal } from "./format";
import { Link } from "./Link";
import { Title } from "./Marked";
import { ScoreBar, ScoreNumbers } from "./ScoreBar";

interface GivenHit {
  readonly id: string;
  readonly rank: number;
  /** Null for a memory that is no longer stored. */
  readonly title: string | null;
  readonly score: number;
  /** Empty for a hit that was imported: its score is not known. */
  readonly explain: Explain;
  readonly used?: boolean;
}

/** The hits of a recall as they were given. */
export function GivenHits({ hits }: { readonly hits: readonly GivenHit[] }) {
  const most = max(hits, ({ explain }) => lengthOf(explain)) ?? 1;
  return (
    <ol className="hits">
      {hits.map((hit) => (
        <GivenLine key={hit.rank} hit={hit} most={most} />
      ))}
    </ol>
  );
}

/** Says if the score of a hit is known. */
export function isScored({ explain }: Pick<GivenHit, "explain">): boolean {
  return Object.keys(explain).length > 0;
}

function GivenLine({ hit, most }: { readonly hit: GivenHit; readonly most: number }) {
  const scored = isScored(hit);
  const used = hit.used ? "used in the output" : "";
  return (
    <li>
      <div className="hit-head">
        {hit.title === null ? (
          <span className="muted">No longer stored</span>
        ) : (
          <Link className="row-title" href={linkTo("/", { memory: hit.id })}>
            <Title title={hit.title || "Untitled"} />
          </Link>
        )}
        <span className="match">{scored ? decimal(hit.score, 3) : used}</span>
      </div>
      {scored && (
        <>
          <ScoreBar explain={hit.explain} most={most} />
          <details>
            <summary>{["Components", used].filter(Boolean).join(" · ")}</summary>
            <ScoreNumbers explain={hit.explain} />
          </details>
        </>
      )}
    </li>
  );
}
