import { useRef, useState } from "react";
import { useService } from "../../api/client";
import { ONCE, useEmptyRecalls } from "../../api/queries";
import type { GivenCue, GivenMemory, RunStoryView } from "../../api/schema";
import { exactMoment, whole } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { Link } from "../../parts/Link";
import { HitHead, MemoryLink } from "../../parts/MemoryLink";
import { isScored, lengthOfAll, Why } from "../../parts/ScoreBar";
import { Folded, Loading, More, Unshown } from "../../parts/states";
import { Markdown, OneLine } from "../../parts/text";
import { linkWith } from "../../state/address";
import { useShortcuts } from "../../state/shortcuts";
import { Compiled } from "../try/Compiled";

const MOST = 1_000;
/** Memories, and as many cues, that the service answers for a run. */

/** What the run was told: histories and warnings by time, then its contexts, then the questions that found nothing. */
export function Told({ story: { run_id: run, given, cues } }: { readonly story: RunStoryView }) {
  const [text, find] = useState("");
  const section = useRef<HTMLElement>(null);
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const says = (...texts: readonly (string | null)[]) => {
    const all = texts.join("\n").toLowerCase();
    return words.every((word) => all.includes(word));
  };
  const hits = given.filter(({ title, shown, agent, query }) => says(title, shown, agent, query));
  const warnings = cues.filter(({ lesson, plan }) => says(lesson, plan));
  const tellings = [
    ...[...Map.groupBy(hits, (one) => one.recall_id)].map(([id, hits]) => ({
      at: hits[0]?.given_at ?? "",
      view: <Asked key={id} hits={hits} />,
    })),
    ...[...Map.groupBy(warnings, (one) => one.activation_id)].map(([id, cues]) => ({
      at: cues[0]?.given_at ?? "",
      view: <Warned key={id} cues={cues} />,
    })),
  ].sort((one, other) => Date.parse(one.at) - Date.parse(other.at));
  /** Opens why the first block was shown, and goes there. */
  const why = () => {
    const first = section.current?.querySelector<HTMLDetailsElement>("details.why");
    if (!first) return;
    first.open = true;
    first.querySelector("summary")?.focus();
  };
  useShortcuts({ w: why });
  const count = given.length + cues.length;
  return (
    <section ref={section}>
      <h3>What it was told</h3>
      {count > 0 && (
        <div className="search">
          <Icon name="search" />
          <input
            type="search"
            dir="auto"
            aria-label="Find in what it was told"
            placeholder="Find (/), then Enter for why"
            value={text}
            onChange={(event) => find(event.target.value)}
            onKeyDown={(event) => {
              if (event.key !== "Enter") return;
              // Else the key would press what has the focus next.
              event.preventDefault();
              why();
            }}
          />
          <span role="status" className="mode">
            {words.length > 0 && `${whole(hits.length + warnings.length)} of ${whole(count)}`}
          </span>
        </div>
      )}
      {tellings.map(({ view }) => view)}
      {(given.length >= MOST || cues.length >= MOST) && (
        <p role="status">
          This is not all: the first {whole(MOST)} memories and the first {whole(MOST)} cues are shown.
        </p>
      )}
      {words.length === 0 && <Contexts run={run} />}
      {words.length === 0 && <Nothing run={run} found={count > 0} />}
    </section>
  );
}

/** The recalls of the run that found nothing. */
function Nothing({ run, found }: { readonly run: string; readonly found: boolean }) {
  const empty = useEmptyRecalls(run);
  const recalls = empty.data?.pages.flat();
  if (!recalls) return <Unshown what="The questions that found nothing" query={empty} />;
  if (recalls.length === 0) return found ? null : <p className="muted">Nothing: it asked for no history, and no plan of it fired a cue.</p>;
  return (
    <>
      <ul className="left">
        {recalls.map(({ recall_id, query }) => (
          <li key={recall_id}>
            <Link className="row-title" href={linkWith({ recall: recall_id })}>
              <OneLine text={query} />
            </Link>
            <span className="nothing">found nothing</span>
          </li>
        ))}
      </ul>
      <More pages={empty} />
    </>
  );
}

function Asked({ hits }: { readonly hits: readonly GivenMemory[] }) {
  const [first] = hits;
  if (!first) return null;
  const most = lengthOfAll(hits);
  return (
    <div className="recall">
      <p>
        {first.agent ?? "An agent"} asked “<OneLine text={first.query} />” <span className="muted">{exactMoment(first.given_at)}</span>
      </p>
      <ol className="told">
        {hits.map((hit) => (
          <Block key={hit.rank} hit={hit} most={most} />
        ))}
      </ol>
      <Folded label="What was found and not shown">
        <Left recall={first.recall_id} />
      </Folded>
    </div>
  );
}

/** What a memory told the run, if it was used, and folded, why it was shown. */
function Block({ hit, most }: { readonly hit: GivenMemory; readonly most: number }) {
  const { id, title, shown, used } = hit;
  return (
    <li>
      <HitHead id={id} title={title}>
        <span className={`use ${used.replace(" ", "-")}`}>{used}</span>
      </HitHead>
      {shown !== null ? (
        <Markdown text={shown} lines />
      ) : (
        title !== null && <p className="muted">Which passages of it were shown is not known.</p>
      )}
      {isScored(hit.explain) && (
        <details className="why">
          <summary title="Unfold the first (w)">Why: number {hit.rank} for this question</summary>
          <Why hit={hit} most={most} />
        </details>
      )}
    </li>
  );
}

const REASONS: Readonly<Record<string, string>> = {
  draw: "withheld by chance, to measure what it does",
  next: "next for a slot that stayed empty by chance",
  room: "no room, or another says the same",
  threshold: "not likely enough to matter",
};

/** What was found and not shown. */
function Left({ recall }: { readonly recall: string }) {
  const params = { path: { recall_id: recall } };
  const found = useService().useQuery("get", "/api/recalls/{recall_id}", { params }, { staleTime: ONCE.staleTime });
  if (found.isError) return <Unshown what="What was not shown" query={found} />;
  if (!found.data) return <Loading what="what was not shown" />;
  const { withheld } = found.data;
  return (
    <>
      <ul className="left">
        {withheld.map(({ id, title, reason }) => (
          <li key={id}>
            <MemoryLink className="row-title" id={id} title={title || "A memory that is no longer stored"} />
            <span className="muted">{REASONS[reason] ?? reason}</span>
          </li>
        ))}
      </ul>
      <p>
        {withheld.length === 0 && "Nothing. "}
        <Link href={linkWith({ recall })}>Open the recall with its parameters</Link>
      </p>
    </>
  );
}

function Warned({ cues }: { readonly cues: readonly GivenCue[] }) {
  const [first] = cues;
  if (!first) return null;
  return (
    <div className="recall">
      <p>
        Warned before “<OneLine text={first.plan} />” <span className="muted">{exactMoment(first.given_at)}</span>
      </p>
      <ol className="told">
        {cues.map(({ id, lesson, outcome }) => (
          <li key={id}>
            <HitHead id={id} title={lesson}>
              <span className={`use ${outcome ?? "not-known"}`}>{outcome ?? "not known"}</span>
            </HitHead>
          </li>
        ))}
      </ol>
    </div>
  );
}

const CONTEXTS = 200;
/** Contexts of a run that are listed. */

/** The whole prompts that were compiled for the run, the latest first, each read once it is unfolded. */
function Contexts({ run }: { readonly run: string }) {
  const found = useService().useQuery("get", "/api/contexts", { params: { query: { run_id: run, limit: CONTEXTS } } });
  if (!found.data) return <Unshown what="The contexts" query={found} />;
  return (
    <>
      {found.data.map((context) => (
        <Folded
          key={context.id}
          className="recall"
          label={`Context of ${whole(context.tokens)} tokens${context.agent ? `, ${context.agent}` : ""}, ${exactMoment(context.created_at)}`}
        >
          <Compiled id={context.id} />
        </Folded>
      ))}
      {found.data.length === CONTEXTS && <p role="status">These are the latest {whole(CONTEXTS)} contexts; there may be more.</p>}
    </>
  );
}
