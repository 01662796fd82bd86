import { useRecalls } from "../../api/recalls";
import { useRun } from "../../api/runs";
import type { Given, Run, RunStory } from "../../api/types";
import { OpenedPane } from "../../parts/DetailPane";
import { duration, exactMoment, money, whole } from "../../parts/format";
import { GivenHits, isScored } from "../../parts/GivenHits";
import { Icon } from "../../parts/Icon";
import { Link } from "../../parts/Link";
import { Markdown } from "../../parts/Markdown";
import { Quality, Score, Verdict } from "../../parts/marks";
import { OneLine } from "../../parts/OneLine";
import { PaneTitle } from "../../parts/PaneTitle";
import { ScoreLegend } from "../../parts/ScoreBar";
import { linkTo } from "../../state/address";
import { durationOf } from "./asked";
import { RunDetails, Stages } from "./Spent";

interface Props {
  readonly id: string;
  readonly onClose: () => void;
}

/** A run: its history, output, judgement and observations. */
export function RunDetail({ id, onClose }: Props) {
  return (
    <OpenedPane name="run" query={useRun(id)} onClose={onClose}>
      {(story) => <Story story={story} />}
    </OpenedPane>
  );
}

function Story({ story }: { readonly story: RunStory }) {
  const { run } = story;
  return (
    <article>
      <header className="detail-head">
        <PaneTitle>
          <OneLine text={run?.task || story.run_id} />
        </PaneTitle>
        {run ? <Judgement run={run} /> : <p className="muted">The run itself is not stored. Below are its recalls and observations.</p>}
      </header>
      {run && run.issues.length > 0 && <Issues issues={run.issues} />}
      <History run={story.run_id} given={story.given} />
      {run?.output && (
        <section>
          <h3>Output</h3>
          <Markdown text={run.output} />
        </section>
      )}
      <Left story={story} />
      {run && <Stages run={run} />}
      {run && <RunDetails run={run} />}
    </article>
  );
}

function Judgement({ run }: { readonly run: Run }) {
  const when = run.finished_at ?? run.started_at ?? run.created_at;
  const took = durationOf(run);
  return (
    <p className="row-facts">
      <span className="kind">
        <OneLine text={run.run_id} />
      </span>
      {run.task_type && <Link href={linkTo("/runs", { task_type: run.task_type })}>{run.task_type}</Link>}
      {run.agent && <span>{run.agent}</span>}
      <Verdict value={run.verdict} />
      {run.final_score !== null && (
        <span>
          score <Score value={run.final_score} />
        </span>
      )}
      {run.round_scores.length > 1 && <span>rounds {run.round_scores.map((score) => score.toFixed(1)).join(" → ")}</span>}
      {took !== null && <span>{duration(took)}</span>}
      {run.tokens !== null && <span>{whole(run.tokens)} tokens</span>}
      {run.cost !== null && <span>cost {money(run.cost)}</span>}
      <time dateTime={when}>{exactMoment(when)}</time>
    </p>
  );
}

function Issues({ issues }: { readonly issues: readonly string[] }) {
  return (
    <section>
      <h3>Issues found by the evaluator</h3>
      <ul className="fact-list">
        {issues.map((issue, place) => (
          <li key={place} className="issue" dir="auto">
            <span className="issue-mark">
              <Icon name="flag" label="Issue" />
            </span>{" "}
            {issue}
          </li>
        ))}
      </ul>
    </section>
  );
}

function History({ run, given }: { readonly run: string; readonly given: readonly Given[] }) {
  const recalls = Object.values(Object.groupBy(given, (one) => one.recall_id)) as readonly (readonly Given[])[];
  return (
    <section>
      <h3>History given to this run</h3>
      {given.some(isScored) && <ScoreLegend />}
      <Empty run={run} found={given.length > 0} />
      {recalls.map((hits) => (
        <Recall key={hits[0]?.recall_id} hits={hits} />
      ))}
    </section>
  );
}

/** The recalls of the run that found nothing. */
function Empty({ run, found }: { readonly run: string; readonly found: boolean }) {
  const pages = useRecalls({ text: "", agent: "", run_id: run, mode: "", purpose: "", outcome: "empty" }).data?.pages;
  if (!pages) return null;
  const count = pages.flat().length;
  if (count === 0) return found ? null : <p className="muted">No recall names this run.</p>;
  return (
    <p>
      <Link href={linkTo("/recalls", { run_id: run, outcome: "empty" })}>
        {count === 1 ? "1 recall" : `${whole(count)} recalls`} of this run found nothing
      </Link>
    </p>
  );
}

function Recall({ hits }: { readonly hits: readonly Given[] }) {
  const [first] = hits;
  if (!first) return null;
  return (
    <div className="recall">
      <p>
        “{first.query}”{" "}
        <span className="muted">
          {first.agent ? `${first.agent}, ` : ""}
          {exactMoment(first.given_at)}
        </span>
      </p>
      <GivenHits hits={hits} />
    </div>
  );
}

const OUTCOMES: Readonly<Record<string, string>> = {
  stored: "This run was stored as an observation:",
  joined: "An earlier memory already has the same content.",
  deleted: "The observation was deleted. You can restore it from the trash.",
  superseded: "A later observation took its place: it says more, or was judged better.",
  refused: "The observation was refused",
};

function Left({ story }: { readonly story: RunStory }) {
  const { observation, observations } = story;
  const outcome = observation ? (observation.outcome ? OUTCOMES[observation.outcome] : "The observation is still being made.") : null;
  return (
    <section>
      <h3>Observations</h3>
      {outcome && <p>{observation?.reason && observation.outcome === "refused" ? `${outcome}: ${observation.reason}` : outcome}</p>}
      {observations.length === 0 && !outcome && <p className="muted">No observation was made from this run.</p>}
      <ul className="left">
        {observations.map((memory) => (
          <li key={memory.id}>
            <Link className="row-title" href={linkTo("/", { memory: memory.id })}>
              <OneLine text={memory.title || memory.body.slice(0, 120)} />
            </Link>
            <span className="row-marks">
              {memory.retired_as && <span className="muted">{memory.retired_as}</span>}
              <Quality value={memory.quality} />
              <Score value={memory.final_score} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
