import { useMemo } from "react";
import { flushSync } from "react-dom";
import { useRuns } from "../../api/queries";
import type { RunPoint, RunSummary } from "../../api/schema";
import { Choice } from "../../parts/Field";
import { counted, whole } from "../../parts/format";
import { ListPane } from "../../parts/list";
import { SearchField } from "../../parts/SearchField";
import { Empty } from "../../parts/states";
import { changeAddress, useAddress } from "../../state/address";
import { useListKeys } from "../../state/stepping";
import { useTitle } from "../../state/title";
import { type Asked, type Filters, isNarrowed, NAMES, narrowed, readAsked, VALUED, valuesOf, whenOf } from "./asked";
import { RecallDetail } from "./RecallDetail";
import { RunDetail } from "./RunDetail";
import { AT_FIRST, lineOf, RunTable, useRows } from "./RunTable";
import { ScorePlot } from "./ScorePlot";

/** The runs of pipelines as a table and as scores over time, and beside them the run that is open. */
export function Runs() {
  const { params } = useAddress();
  const asked = useMemo(() => readAsked(params), [params]);
  const found = useRuns();
  const runs = useMemo(() => found.data?.pages.flatMap((page) => page.runs) ?? [], [found.data]);
  const shown = useMemo(() => narrowed(runs, asked), [runs, asked]);
  const [rows, showRows] = useRows();
  const { open } = asked;
  const recall = params.get("recall");
  const ids = shown.map((run) => run.run_id);
  const reach = (place: number) => {
    if (place >= rows) flushSync(() => showRows(place + AT_FIRST));
  };
  const close = useListKeys({ parameter: "run", ids, open, lineOf, reach });
  useTitle(open ?? "Runs");
  return (
    <div className={`runs ${open || recall ? "with-detail" : ""}`}>
      <ListPane name="runs" query={found} nothing={runs.length === 0 && <Nothing />}>
        <Overview runs={runs} shown={shown} asked={asked} loading={found.isFetchingNextPage} />
        {shown.length > 0 && <RunTable runs={shown} asked={asked} rows={rows} />}
        {rows < shown.length && (
          <button type="button" className="quiet more" onClick={() => showRows(rows + AT_FIRST)}>
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

interface OverviewProps {
  readonly runs: readonly RunSummary[];
  readonly shown: readonly RunSummary[];
  readonly asked: Asked;
  readonly loading: boolean;
}

function Overview({ runs, shown, asked, loading }: OverviewProps) {
  const points = useMemo(() => shown.flatMap(pointOf), [shown]);
  const types = useMemo(() => [...new Set(runs.map((run) => run.task_type))].sort(), [runs]);
  return (
    <div className="toolbar">
      <ScorePlot
        points={points}
        types={types}
        taskType={asked.filters.task_type}
        chooseType={(task_type) => changeAddress({ task_type })}
        open={asked.open}
      />
      <RunFilters runs={runs} filters={asked.filters} />
      <p className="muted" role="status">
        {countOf(runs, shown, asked)}
        {loading && " · loading more …"}
      </p>
    </div>
  );
}

function countOf(runs: readonly RunSummary[], shown: readonly RunSummary[], { filters }: Asked): string {
  const all = counted(runs.length, "run", "runs");
  if (!isNarrowed(filters)) return all;
  return shown.length === 0 ? "No run matches these filters" : `${whole(shown.length)} of ${all}`;
}

function pointOf(run: RunSummary): readonly RunPoint[] {
  const { run_id, task_type, verdict, final_score } = run;
  return final_score === null ? [] : [{ run_id, task_type, verdict, final_score, happened_at: whenOf(run) }];
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

const PAUSE_MILLISECONDS = 300;
/** After the last key, before the list is narrowed. */

interface Props {
  readonly runs: readonly RunSummary[];
  readonly filters: Filters;
}

/** Narrows the table and the plot: by words, and by values that runs have. */
function RunFilters({ runs, filters }: Props) {
  return (
    <div className="run-filters" role="group" aria-label="Filters">
      <SearchField text={filters.text} label="Search runs" placeholder="Task, ID or issue" pause={PAUSE_MILLISECONDS} />
      {VALUED.map((name) => (
        <Valued key={name} name={name} chosen={filters[name]} values={valuesOf(runs, name, filters[name])} />
      ))}
      {isNarrowed(filters) && (
        <button type="button" className="quiet" onClick={() => changeAddress({ q: null, task_type: null, verdict: null, agent: null })}>
          Clear filters
        </button>
      )}
    </div>
  );
}

interface ValuedProps {
  readonly name: (typeof VALUED)[number];
  readonly chosen: string;
  readonly values: readonly string[];
}

function Valued({ name, chosen, values }: ValuedProps) {
  if (values.length === 0) return null;
  return (
    <Choice
      aria-label={NAMES[name]}
      value={chosen}
      set={(value) => changeAddress({ [name]: value })}
      options={[["", `Any ${NAMES[name].toLowerCase()}`], ...values.map((value) => [value, value] as const)]}
    />
  );
}
