import { useRun } from "../../api/queries";
import type { RunStoryView, RunView } from "../../api/schema";
import { OpenedPane } from "../../parts/DetailPane";
import { duration, exactMoment, money, whole } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { Link } from "../../parts/Link";
import { Markdown } from "../../parts/Markdown";
import { Quality, Score, Verdict } from "../../parts/marks";
import { OneLine } from "../../parts/OneLine";
import { PaneTitle } from "../../parts/PaneTitle";
import { linkTo } from "../../state/address";
import { useSubject } from "../../state/tried";
import { durationOf } from "./asked";
import { RunDetails, Stages } from "./Spent";
import { Told } from "./Told";

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

function Story({ story }: { readonly story: RunStoryView }) {
  const { run } = story;
  useSubject(run?.task ?? "");
  return (
    <article>
      <header className="detail-head">
        <PaneTitle>
          <OneLine text={run?.task || story.run_id} />
        </PaneTitle>
        {run ? <Judgement run={run} /> : <p className="muted">The run itself is not stored. Below are its recalls and observations.</p>}
      </header>
      <Told story={story} />
      {run?.output ? (
        <section>
          <h3>What it wrote</h3>
          <Markdown text={run.output} />
        </section>
      ) : (
        run && <p className="muted">Its output is not stored.</p>
      )}
      {run && run.issues.length > 0 && <Issues issues={run.issues} />}
      <Left story={story} />
      {run && (
        <details>
          <summary>Stages and parameters</summary>
          <Stages run={run} />
          <RunDetails run={run} />
        </details>
      )}
    </article>
  );
}

function Judgement({ run }: { readonly run: RunView }) {
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
      <h3>How it was judged: issues</h3>
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

const OUTCOMES: Readonly<Record<string, string>> = {
  stored: "This run was stored as an observation:",
  joined: "An earlier memory already has the same content.",
  deleted: "The observation was deleted. You can restore it from the trash.",
  superseded: "A later observation took its place: it says more, or was judged better.",
  refused: "The observation was refused",
};

function Left({ story }: { readonly story: RunStoryView }) {
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
            <Link className="row-title" href={linkTo("/memory", { memory: memory.id })}>
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
