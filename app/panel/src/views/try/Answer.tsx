import type { UseQueryResult } from "@tanstack/react-query";
import type { HistoryView, HitView } from "../../api/schema";
import { Copied } from "../../parts/CopyButton";
import { nameOf } from "../../parts/excerpt";
import { day, milliseconds, share, shortPath, whole } from "../../parts/format";
import { IssueStates } from "../../parts/IssueStates";
import { HitHead, MemoryLink } from "../../parts/MemoryLink";
import { Quality, Score } from "../../parts/marks";
import { phraseOf } from "../../parts/relations";
import { component, type Explain, linkOf, ScoreBar, ScoreNumbers } from "../../parts/ScoreBar";
import { Answered } from "../../parts/states";
import { OneLine } from "../../parts/text";

const SHOWN = 200;
/** Characters of a passage that are shown. */

/** The other preset's answer to the same question. */
interface Other {
  readonly name: string;
  readonly hits: readonly HitView[] | undefined;
}

interface Measures {
  readonly most: number;
  readonly other?: Other;
}

interface Props extends Measures {
  readonly name: string;
  readonly answer: UseQueryResult<HistoryView>;
}

export function Answer({ name, answer, ...measures }: Props) {
  const { data } = answer;
  return (
    <section className={`answer ${answer.isPlaceholderData ? "stale" : ""}`} aria-label={`Answer of the preset ${name}`}>
      <header>
        <h2>{name}</h2>
        {data && (
          <p className="row-facts">
            <span className={`mode ${data.degraded.length ? "degraded" : ""}`}>{data.mode}</span>
            <span>{whole(data.tokens)} tokens</span>
            {data.probability !== null && <span>speaks to the query: {share(data.probability)}</span>}
            <span>{milliseconds(data.took_ms)}</span>
          </p>
        )}
      </header>
      <Answered query={answer} name="answer">
        {(given) => <Given data={given} {...measures} />}
      </Answered>
    </section>
  );
}

function Given({ data, ...measures }: Measures & { readonly data: HistoryView }) {
  return (
    <>
      {data.degraded.map(({ arm, reason }) => (
        <p key={arm} className="degradation">
          {arm}: {reason}
        </p>
      ))}
      {data.hits.length === 0 ? (
        <p className="muted">{reasonForNothing(data)} The agent gets no history.</p>
      ) : (
        <>
          <ol className="hits">
            {data.hits.map((hit, place) => (
              <HitLine key={hit.id} hit={hit} rank={place + 1} {...measures} />
            ))}
          </ol>
          <Copied title="Markdown for the agent" text={data.markdown} />
        </>
      )}
    </>
  );
}

function reasonForNothing({ needed_tokens }: HistoryView): string {
  if (needed_tokens === null) return "No stored memory is relevant enough.";
  return `The token budget is too small: the best hit needs ${whole(needed_tokens)} tokens.`;
}

function HitLine({ hit, rank, most, other }: Measures & { readonly hit: HitView; readonly rank: number }) {
  const probability = component(hit.explain, "probability");
  return (
    <li>
      <HitHead id={hit.id} title={nameOf(hit)}>
        <span className="match">{hit.score.toFixed(3)}</span>
      </HitHead>
      <ScoreBar parts={hit.parts} most={most} />
      <Boost explain={hit.explain} />
      <Passage hit={hit} />
      <IssueStates issues={hit.issues} />
      <details>
        <summary>
          <span className="row-facts">
            <span className="kind">{hit.kind}</span>
            {probability !== null && <span className="probability">probability {share(probability)}</span>}
            {hit.source && <span>{shortPath(hit.source.uri)}</span>}
            {hit.occurred_at && <time dateTime={hit.occurred_at}>{day(hit.occurred_at)}</time>}
            <Quality value={hit.quality} />
            <Score value={hit.final_score} />
            {other && <Moved hit={hit} rank={rank} other={other} />}
          </span>
        </summary>
        <ScoreNumbers score={hit.score} parts={hit.parts} explain={hit.explain} />
      </details>
    </li>
  );
}

/** The hit's rank in the other preset's answer. */
function Moved({ hit, rank, other: { name, hits } }: { readonly hit: HitView; readonly rank: number; readonly other: Other }) {
  if (!hits) return null;
  const place = hits.findIndex(({ id }) => id === hit.id) + 1;
  if (place === 0) return <span className="moved">not in {name}</span>;
  if (place === rank) return <span className="moved same">same rank in {name}</span>;
  return (
    <span className="moved same">
      rank {place} in {name}
    </span>
  );
}

/** The passage of a long memory that is nearest to the query; a long title is one of its own. */
function Passage({ hit: { title, body, explain } }: { readonly hit: HitView }) {
  const number = component(explain, "passage");
  if (number === null) return null;
  const starts = component(explain, "passage_starts") ?? 0;
  const text = component(explain, "passage_ends") === 0 ? title : body;
  const beyond = component(explain, "without_vector");
  const characters = [...text].slice(starts);
  return (
    <p className="boost">
      Passage {number} of {component(explain, "passages")}: <OneLine text={characters.slice(0, SHOWN).join("")} />
      {characters.length > SHOWN && " …"}
      {beyond !== null && ` (${beyond.toLocaleString()} characters at the end have no vector)`}
    </p>
  );
}

/** The link that found or boosted the hit. */
function Boost({ explain }: { readonly explain: Explain }) {
  const link = linkOf(explain);
  if (!link) return null;
  return (
    <p className="boost">
      Link: {phraseOf(link)} <MemoryLink id={link.memory_id} title={link.title || "a memory without a title"} />
    </p>
  );
}
