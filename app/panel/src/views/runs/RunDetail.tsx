import { useRun } from "../../api/queries";
import type { Run, RunStoryView } from "../../api/schema";
import { nameOf } from "../../parts/excerpt";
import { bytes, decimal, duration, exactMoment, money, whole } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { Link } from "../../parts/Link";
import { MemoryLink } from "../../parts/MemoryLink";
import { Quality, Score, Verdict } from "../../parts/marks";
import { Details, OpenedPane, PaneTitle } from "../../parts/pane";
import { Markdown, OneLine } from "../../parts/text";
import { linkTo } from "../../state/address";
import { useSubject } from "../../state/tried";
import { durationOf } from "./asked";
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
          <RunDetails run={run} />
        </details>
      )}
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

function Left({ story: { observation, observations } }: { readonly story: RunStoryView }) {
  const { outcome = "", reason = "" } = observation ?? {};
  return (
    <section>
      <h3>Observations</h3>
      {observation && (
        <p>{outcome ? `The observation was ${outcome}${reason && `: ${reason}`}.` : "The observation is still being made."}</p>
      )}
      {observations.length === 0 && !observation && <p className="muted">No observation was made from this run.</p>}
      <ul className="left">
        {observations.map((memory) => (
          <li key={memory.id}>
            <MemoryLink className="row-title" id={memory.id} title={nameOf(memory)} />
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

/** What the other sections do not show: the stages with all that they tell, the queries, and the facts of the output. */
function RunDetails({ run }: { readonly run: Run }) {
  const size = [run.lines !== null && `${whole(run.lines)} lines`, run.bytes !== null && bytes(run.bytes)].filter(Boolean).join(", ");
  return (
    <Details
      title="Parameters"
      facts={[
        ...Object.entries(run.stages).map(([name, stage]) => [name, toldBy(stage)] as const),
        ["Queries", run.queries.join("; ")],
        ["Output path", run.output_path],
        ["Output size", size],
        ["Started", run.started_at && exactMoment(run.started_at)],
        ["Finished", run.finished_at && exactMoment(run.finished_at)],
        ["Stored", exactMoment(run.created_at)],
      ]}
      metadata={run.metadata}
    />
  );
}

/** What a stage tells as a number or a word. */
function toldBy(stage: unknown): string {
  const simple = Object.entries(stage ?? {}).filter(([, value]) => ["number", "string"].includes(typeof value));
  return simple.map(([name, value]) => `${name.replaceAll("_", " ")} ${shown(name, value)}`).join(", ");
}

function shown(name: string, value: unknown): string {
  if (typeof value !== "number") return String(value);
  if (name.includes("cost")) return money(value);
  return Number.isInteger(value) ? whole(value) : decimal(value, 2);
}
