import { useEffect } from "react";
import { useRuns, useScores } from "../../api/runs";
import type { RunSummary } from "../../api/types";
import { counted, day, money, whole } from "../../parts/format";
import { Icon } from "../../parts/Icon";
import { Link } from "../../parts/Link";
import { Score, Verdict } from "../../parts/marks";
import { OneLine } from "../../parts/OneLine";
import { Empty, Failure, Loading } from "../../parts/states";
import { changeAddress, linkWith, useAddress } from "../../state/address";
import { focusLine, focusTitle, useFocusBack } from "../../state/focus";
import { useShortcuts } from "../../state/shortcuts";
import { type Step, useStepping } from "../../state/stepping";
import { RunDetail } from "./RunDetail";
import { ScorePlot } from "./ScorePlot";

const FILTERS = ["task_type", "verdict", "agent"] as const;
const NAMES = { task_type: "Task type", verdict: "Verdict", agent: "Agent" } as const;

/** What pipelines did, how it was judged over time, and beside it the run that is open. */
export function Runs() {
  const { params } = useAddress();
  const [task_type, verdict, agent] = FILTERS.map((name) => params.get(name) ?? "") as [string, string, string];
  const pages = useRuns({ task_type, verdict, agent });
  const open = params.get("run");
  const runs = pages.data?.pages.flatMap((page) => page.runs) ?? [];
  const close = () => {
    if (open !== null) changeAddress({ run: null });
  };
  const ids = runs.map((run) => run.run_id);
  const place = useStepping(ids, open);
  const move = (step: Step) => {
    const next = place(step);
    const id = ids[next];
    if (id) changeAddress({ run: id }, { replace: open !== null, follow: !focusLine(lineOf(id)) });
    if (next >= ids.length - 1 && pages.hasNextPage && !pages.isFetchingNextPage) void pages.fetchNextPage();
  };
  useFocusBack(open, lineOf, ".list");
  useShortcuts({ j: () => move(1), k: () => move(-1), Escape: close });
  useEffect(() => {
    document.title = open ? `${open} · Priors` : "Runs · Priors";
  }, [open]);
  return (
    <div className={`memories ${open ? "with-detail" : ""}`}>
      <section className="pane-list" aria-label="Runs">
        <h1 className="visually-hidden">Runs</h1>
        <Overview />
        {pages.isError ? (
          <Failure what="The list" error={pages.error} retry={pages.refetch} />
        ) : pages.isPending ? (
          <Loading what="runs" />
        ) : runs.length === 0 ? (
          <Nothing filtered={task_type + verdict + agent !== ""} />
        ) : (
          <div className={`list ${pages.isPlaceholderData ? "stale" : ""}`} tabIndex={-1}>
            <p className="list-count" role="status">
              {pages.hasNextPage ? `Latest ${whole(runs.length)} runs` : counted(runs.length, "run", "runs")}
              <VerdictFilter />
            </p>
            <ol>
              {runs.map((run) => (
                <Row key={run.run_id} run={run} open={run.run_id === open} />
              ))}
            </ol>
            {pages.hasNextPage && (
              <button
                type="button"
                className="quiet more"
                disabled={pages.isFetchingNextPage}
                onClick={() => void pages.fetchNextPage()}
              >
                {pages.isFetchingNextPage ? "Loading …" : "Show more"}
              </button>
            )}
          </div>
        )}
      </section>
      {open ? (
        <RunDetail key={open} id={open} onClose={close} />
      ) : (
        <aside className="pane-detail nothing-open" aria-label="Run">
          <p>
            Select a run to see which memories it was given and how it was judged. Press <kbd>j</kbd> or <kbd>k</kbd> to
            move.
          </p>
        </aside>
      )}
    </div>
  );
}

function Overview() {
  const { params } = useAddress();
  const scores = useScores();
  const points = scores.data ?? [];
  const chosen = FILTERS.filter((name) => params.get(name));
  return (
    <div className="toolbar">
      {scores.isError ? (
        <p className="problem">The scores cannot be shown: {scores.error.message}</p>
      ) : (
        <ScorePlot
          points={points}
          taskType={params.get("task_type") ?? ""}
          chooseType={(task_type) => changeAddress({ task_type })}
          open={params.get("run")}
        />
      )}
      {chosen.length > 0 && (
        <ul className="chips" aria-label="Active filters">
          {chosen.map((name) => (
            <li key={name}>
              <button type="button" className="chip" onClick={() => changeAddress({ [name]: null })}>
                {NAMES[name]}: {params.get(name)}
                <Icon name="close" label="Remove" />
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function VerdictFilter() {
  const { params } = useAddress();
  const verdicts = [...new Set((useScores().data ?? []).map((point) => point.verdict))].filter(Boolean).sort();
  if (verdicts.length === 0) return null;
  return (
    <label>
      <span className="visually-hidden">Verdict</span>
      <select value={params.get("verdict") ?? ""} onChange={(event) => changeAddress({ verdict: event.target.value })}>
        <option value="">Any verdict</option>
        {verdicts.map((verdict) => (
          <option key={verdict}>{verdict}</option>
        ))}
      </select>
    </label>
  );
}

function lineOf(id: string): string {
  return `run-${id}`;
}

function Row({ run, open }: { readonly run: RunSummary; readonly open: boolean }) {
  const when = run.finished_at ?? run.started_at ?? run.created_at;
  return (
    <li id={lineOf(run.run_id)}>
      <Link className="row" href={linkWith({ run: run.run_id })} aria-current={open ? "true" : undefined} onClick={open ? focusTitle : undefined}>
        <span className="row-title">
          <OneLine text={run.task || run.run_id} />
        </span>
        <span className="row-marks">
          <Score value={run.final_score} />
        </span>
        <span className="row-facts">
          <span className="kind">
            <OneLine text={run.run_id} />
          </span>
          {run.task_type && <span>{run.task_type}</span>}
          <Verdict value={run.verdict} />
          {run.tokens !== null && <span className="extra">{whole(run.tokens)} tokens</span>}
          {run.cost !== null && <span className="extra">{money(run.cost)}</span>}
          <time dateTime={when}>{day(when)}</time>
        </span>
      </Link>
    </li>
  );
}

function Nothing({ filtered }: { readonly filtered: boolean }) {
  if (filtered) {
    return (
      <Empty title="No run matches these filters">
        <button type="button" onClick={() => changeAddress({ task_type: null, verdict: null, agent: null })}>
          Show all runs
        </button>
      </Empty>
    );
  }
  return (
    <Empty title="No runs yet">
      <p>
        Send one with <code>POST /api/runs</code>, or import the runs of an earlier harness with <code>priors import</code>.
      </p>
    </Empty>
  );
}
