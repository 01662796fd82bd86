import type { UseQueryResult } from "@tanstack/react-query";
import type { History, Hit } from "../../api/types";
import { type Explain, linkOf, type Weights } from "../../parts/components";
import { day, milliseconds, shortPath, whole } from "../../parts/format";
import { Link } from "../../parts/Link";
import { Quality, Score } from "../../parts/marks";
import { OneLine } from "../../parts/OneLine";
import { phraseOf } from "../../parts/relations";
import { ScoreBar, ScoreNumbers } from "../../parts/ScoreBar";
import { Failure, Loading } from "../../parts/states";
import { linkTo } from "../../state/address";

interface Props {
  readonly name: string;
  readonly answer: UseQueryResult<History>;
  readonly weights: Weights;
  readonly most: number;
}

export function Answer({ name, answer, weights, most }: Props) {
  const { data } = answer;
  return (
    <section className={`answer ${answer.isPlaceholderData ? "stale" : ""}`} aria-label={`Answer of the preset ${name}`}>
      <header>
        <h2>{name}</h2>
        {data && (
          <p className="row-facts">
            <span className={`mode ${data.degraded.length ? "degraded" : ""}`}>{data.mode}</span>
            <span>{whole(data.tokens)} tokens</span>
            <span>{milliseconds(data.took_ms)}</span>
          </p>
        )}
      </header>
      {answer.isError ? (
        <Failure what="The answer" error={answer.error} retry={answer.refetch} />
      ) : data ? (
        <Given data={data} weights={weights} most={most} />
      ) : (
        <Loading what="the answer" />
      )}
    </section>
  );
}

function Given({ data, weights, most }: { readonly data: History; readonly weights: Weights; readonly most: number }) {
  return (
    <>
      {data.degraded.map(({ arm, reason }) => (
        <p key={arm} className="degradation">
          {arm}: {reason}
        </p>
      ))}
      {data.hits.length === 0 ? (
        <p className="muted">No relevant memory fits the token budget: the agent gets no history.</p>
      ) : (
        <>
          <ol className="hits">
            {data.hits.map((hit) => (
              <HitLine key={hit.id} hit={hit} weights={weights} most={most} />
            ))}
          </ol>
          <h3>Markdown for the agent</h3>
          <pre tabIndex={0} className="wrapped">
            {data.markdown}
          </pre>
        </>
      )}
    </>
  );
}

function HitLine({ hit, weights, most }: { readonly hit: Hit; readonly weights: Weights; readonly most: number }) {
  return (
    <li>
      <div className="hit-head">
        <Link className="row-title" href={linkTo("/", { memory: hit.id })}>
          <OneLine text={hit.title || hit.body.slice(0, 120)} />
        </Link>
        <span className="match">{hit.score.toFixed(3)}</span>
      </div>
      <ScoreBar explain={hit.explain} weights={weights} most={most} />
      <Lift explain={hit.explain} />
      <details>
        <summary>
          <span className="row-facts">
            <span className="kind">{hit.kind}</span>
            {hit.source && <span>{shortPath(hit.source.uri)}</span>}
            {hit.occurred_at && <time dateTime={hit.occurred_at}>{day(hit.occurred_at)}</time>}
            <Quality value={hit.quality} />
            <Score value={hit.final_score} />
          </span>
        </summary>
        <ScoreNumbers explain={hit.explain} />
      </details>
    </li>
  );
}

/** The link that brought the hit, or lifted it. */
function Lift({ explain }: { readonly explain: Explain }) {
  const link = linkOf(explain);
  if (!link) return null;
  return (
    <p className="lift">
      Link: {phraseOf(link)}{" "}
      <Link href={linkTo("/", { memory: link.memory_id })}>
        <OneLine text={link.title || "an untitled memory"} />
      </Link>
    </p>
  );
}
