import { useMemo, useState } from "react";
import { flushSync } from "react-dom";
import { useRuns } from "../../api/queries";
import type { RunSummary } from "../../api/schema";
import { Choice } from "../../parts/Field";
import { counted, duration, money, whole } from "../../parts/format";
import { ListPane, ListRow } from "../../parts/list";
import { Score, Verdict } from "../../parts/marks";
import { SearchField } from "../../parts/SearchField";
import { Empty } from "../../parts/states";
import { OneLine } from "../../parts/text";
import { Unknown } from "../../parts/Unknown";
import { changeAddress, linkWith, useAddress } from "../../state/address";
import { useListKeys } from "../../state/stepping";
import { useTitle } from "../../state/title";
import { durationOf, isNarrowed, narrowed, SORTS, VALUED, whenOf } from "./asked";
import { RecallDetail } from "./RecallDetail";
import { RunDetail } from "./RunDetail";

const AT_ONCE = 50;
/** Rows at first, and as many more on request. */

/** The runs of pipelines, and beside them the run that is open, or one of its recalls. */
export function Runs() {
  const { params } = useAddress();
  const found = useRuns();
  const runs = useMemo(() => found.data?.pages.flatMap((page) => page.runs) ?? [], [found.data]);
  const shown = useMemo(() => narrowed(runs, params), [runs, params]);
  const [rows, setRows] = useState(AT_ONCE);
  const [open, recall] = [params.get("run"), params.get("recall")];
  const reach = (place: number) => {
    if (place >= rows) flushSync(() => setRows(place + AT_ONCE));
  };
  const close = useListKeys({ parameter: "run", ids: shown.map((run) => run.run_id), open, lineOf, reach });
  const stop = shown.some((run) => run.run_id === open) ? open : shown[0]?.run_id;
  useTitle(open ?? "Runs");
  return (
    <div className={`runs ${open || recall ? "with-detail" : ""}`}>
      <ListPane name="runs" query={found} nothing={runs.length === 0 && <Nothing />} toolbar={<Filters runs={runs} params={params} />}>
        <Unknown parameter="sort" known={SORTS.map(({ name }) => name)} instead="the latest first are" />
        <p className="list-count" role="status">
          {isNarrowed(params) ? `${whole(shown.length)} of ${counted(runs.length, "run", "runs")}` : counted(runs.length, "run", "runs")}
          {found.isFetchingNextPage && " · loading more …"}
        </p>
        <ol>
          {shown.slice(0, rows).map((run) => (
            <Row key={run.run_id} run={run} open={run.run_id === open} stop={run.run_id === stop} />
          ))}
        </ol>
        {rows < shown.length && (
          <button type="button" className="quiet more" onClick={() => setRows(rows + AT_ONCE)}>
            Show more
          </button>
        )}
      </ListPane>
      {recall ? (
        <RecallDetail key={recall} id={recall} onClose={() => changeAddress({ recall: null })} />
      ) : (
        open && <RunDetail key={open} id={open} onClose={close} />
      )}
    </div>
  );
}

function lineOf(id: string): string {
  return `run-${id}`;
}

function Row({ run, open, stop }: { readonly run: RunSummary; readonly open: boolean; readonly stop: boolean }) {
  const took = durationOf(run);
  return (
    <ListRow
      line={lineOf(run.run_id)}
      href={linkWith({ run: run.run_id })}
      open={open}
      stop={stop}
      title={run.task || run.run_id}
      marks={
        <>
          <Verdict value={run.verdict} />
          <Score value={run.final_score} />
        </>
      }
      facts={
        <>
          <span className="kind name">
            <OneLine text={run.run_id} />
          </span>
          {run.task_type && <span>{run.task_type}</span>}
          {run.agent && <span>{run.agent}</span>}
          {took !== null && <span className="extra">{duration(took)}</span>}
          {run.tokens !== null && <span className="extra">{whole(run.tokens)} tokens</span>}
          {run.cost !== null && <span className="extra">cost {money(run.cost)}</span>}
        </>
      }
      when={whenOf(run)}
    />
  );
}

function Nothing() {
  return (
    <Empty title="No runs yet">
      <p>
        Send one with <code>POST /api/runs</code>, or import the runs of an earlier harness with <code>priors import</code>.
      </p>
    </Empty>
  );
}

/** Narrows the list by words, and by values that runs have. */
function Filters({ runs, params }: { readonly runs: readonly RunSummary[]; readonly params: URLSearchParams }) {
  return (
    <div className="run-filters" role="group" aria-label="Filters">
      <SearchField text={params.get("q") ?? ""} label="Search runs" placeholder="Task, ID or issue" />
      {VALUED.map(({ name, label }) => {
        const chosen = params.get(name) ?? "";
        const values = [...new Set([...runs.map((run) => run[name]), chosen])].filter((value): value is string => Boolean(value)).sort();
        const options = [["", `Any ${label.toLowerCase()}`], ...values.map((value) => [value, value] as const)] as const;
        return <Choice key={name} aria-label={label} value={chosen} set={(value) => changeAddress({ [name]: value })} options={options} />;
      })}
      <Choice
        aria-label="Order"
        value={params.get("sort") ?? ""}
        set={(sort) => changeAddress({ sort })}
        options={SORTS.map(({ name, label }) => [name, label] as const)}
      />
      {isNarrowed(params) && (
        <button type="button" className="quiet" onClick={() => changeAddress({ q: null, task_type: null, verdict: null, agent: null })}>
          Clear filters
        </button>
      )}
    </div>
  );
}
