import { useMemo } from "react";
import { useFacets, useReviewCounts } from "../../api/memories";
import { useRecalls } from "../../api/recalls";
import { useScores } from "../../api/runs";
import { useStatus } from "../../api/service";
import { whole } from "../../parts/format";
import { Link } from "../../parts/Link";
import { OneLine } from "../../parts/OneLine";
import { go, linkTo } from "../../state/address";
import { Hits } from "../recalls/RecallFacts";
import { ScorePlot } from "../runs/ScorePlot";

/** The workspace at a glance, as long as no memory is open. */
export function Overview() {
  return (
    <aside className="overview" aria-label="Overview">
      <article>
        <Stored />
        <ToReview />
        <Asked />
        <Scores />
      </article>
    </aside>
  );
}

/** The tag of the memories that the first start brings. */
const EXAMPLE = "priors-example";

/** The newest memories, whose kinds are counted. */
const COUNTED = 100_000;

function Stored() {
  const facets = useFacets().data;
  const kinds = facets?.kinds ?? [];
  const examples = facets?.tags.find(({ value }) => value === EXAMPLE)?.count ?? 0;
  const status = useStatus().data;
  if (!status || status.live === 0) return null;
  return (
    <>
      <p className="muted">
        Select a memory to read and rate it. Press <kbd>j</kbd> or <kbd>k</kbd> to move, <kbd>u</kbd> or <kbd>d</kbd> to
        rate.
      </p>
      <section>
        <h2>{status.live > COUNTED ? `Of the newest ${whole(COUNTED)} of ${whole(status.live)} memories` : "Stored"}</h2>
        <ul className="tiles">
          {kinds.map(({ value, count }) => (
            <Tile key={value} count={count} name={count === 1 ? value : `${value}s`} href={linkTo("/", { kind: value })} />
          ))}
          {status.runs > 0 && <Tile count={status.runs} name={status.runs === 1 ? "run" : "runs"} href={linkTo("/runs")} />}
        </ul>
        {examples > 0 && (
          <p className="muted">
            <Link href={linkTo("/", { tag: EXAMPLE })}>{whole(examples)} of the memories</Link> and their runs are invented
            examples. <code>priors workspace examples --remove</code> takes them away.
          </p>
        )}
        {status.reasons.map((reason) => (
          <p key={reason} className="degradation">
            {reason}
          </p>
        ))}
        {status.waiting > 0 && <p className="muted">{whole(status.waiting)} memories are waiting for a vector.</p>}
      </section>
    </>
  );
}

function ToReview() {
  const counts = useReviewCounts().data;
  if (!counts) return null;
  const tiles = [
    { count: counts.prune_candidates, name: counts.prune_candidates === 1 ? "prune candidate" : "prune candidates", tab: null },
    { count: counts.quarantined, name: "quarantined", tab: "quarantined" },
    { count: counts.suspect, name: "suspect", tab: "suspect" },
    { count: counts.deleted, name: "in the trash", tab: "deleted" },
  ].filter(({ count }) => count > 0);
  if (tiles.length === 0) return null;
  return (
    <section>
      <h2>To review</h2>
      <ul className="tiles">
        {tiles.map(({ tab, ...tile }) => (
          <Tile key={tile.name} {...tile} href={linkTo("/review", { tab })} />
        ))}
      </ul>
    </section>
  );
}

interface TileProps {
  readonly count: number;
  readonly name: string;
  readonly href: string;
}

function Tile({ count, name, href }: TileProps) {
  return (
    <li>
      <Link className="tile" href={href}>
        <strong>{whole(count)}</strong> {name}
      </Link>
    </li>
  );
}

const LATEST = 5;

function Asked() {
  const pages = useRecalls({ text: "", agent: "", run_id: "", mode: "", purpose: "", outcome: "" }, LATEST).data?.pages;
  const recalls = pages?.flat().slice(0, LATEST) ?? [];
  if (recalls.length === 0) return null;
  return (
    <section>
      <h2>Latest recalls</h2>
      <ul className="left">
        {recalls.map((recall) => (
          <li key={recall.recall_id}>
            <Link className="row-title" href={linkTo("/recalls", { recall: recall.recall_id })}>
              <OneLine text={recall.query} />
            </Link>
            <Hits count={recall.hits} />
          </li>
        ))}
      </ul>
      <Link href={linkTo("/recalls", { outcome: "empty" })}>Recalls that found nothing</Link>
    </section>
  );
}

function Scores() {
  const points = useScores().data;
  const types = useMemo(() => [...new Set((points ?? []).map((point) => point.task_type))].sort(), [points]);
  if (!points || points.length === 0) return null;
  return (
    <section>
      <h2>Runs</h2>
      <ScorePlot
        points={points} types={types} taskType="" open={null}
        hrefOf={(run) => linkTo("/runs", { run })}
        chooseType={(task_type) => go(linkTo("/runs", { task_type }), { follow: true })}
      />
    </section>
  );
}
