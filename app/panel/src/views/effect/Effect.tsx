import { useEffect } from "react";
import { type Period, useEffectExport, useEffectReport, useEffectUse } from "../../api/effect";
import type { Effect as Report } from "../../api/types";
import { exactMoment, whole } from "../../parts/format";
import { Empty, Failure, Loading } from "../../parts/states";
import { changeAddress, useAddress } from "../../state/address";
import { Contrasts, Measures } from "./Contrasts";
import { Ranked } from "./Ranked";

/** What memory did to the runs of the workspace, and what that does not prove. */
export function Effect() {
  const { params } = useAddress();
  const period = { since: params.get("since") ?? "", task_type: params.get("task_type") ?? "" };
  const report = useEffectReport({ ...period, since: period.since && `${period.since}T00:00:00Z` });
  useEffect(() => {
    document.title = "Effect · Priors";
  }, []);
  return (
    <div className="status effect">
      <h1 className="visually-hidden">Effect of memory</h1>
      <Asked period={period} />
      {report.isError && !report.data ? (
        <Failure what="The report" error={report.error} retry={report.refetch} />
      ) : report.data ? (
        <Whole report={report.data} />
      ) : (
        <Loading what="the report" />
      )}
    </div>
  );
}

function Asked({ period }: { readonly period: Period }) {
  const save = useEffectExport({ ...period, since: period.since && `${period.since}T00:00:00Z` });
  return (
    <div className="wide effect-asked">
      <label>
        Since <input type="date" value={period.since} onChange={(event) => changeAddress({ since: event.target.value || null }, { replace: true })} />
      </label>
      <label>
        Task type{" "}
        <input type="text" placeholder="all" value={period.task_type} onChange={(event) => changeAddress({ task_type: event.target.value || null }, { replace: true })} />
      </label>
      <button type="button" disabled={save.isPending} onClick={() => save.mutate("markdown")}>
        Save Markdown
      </button>
      <button type="button" disabled={save.isPending} onClick={() => save.mutate("html")}>
        Save HTML
      </button>
    </div>
  );
}

function Whole({ report }: { readonly report: Report }) {
  if (report.runs === 0) {
    const isPart = report.since !== null || report.task_type !== "";
    return (
      <>
        <Alerts alerts={report.alerts} />
        <Empty title="No finished runs">
          <p>
            {isPart
              ? "No finished run began in this period and has this task type."
              : "Record runs with their scores, and name the run in each recall. This view then compares runs with history and without it."}
          </p>
        </Empty>
      </>
    );
  }
  return (
    <>
      <Alerts alerts={report.alerts} />
      <section>
        <h2>Runs with history and without</h2>
        <p className="muted">{`${report.runs === 1 ? "1 finished run" : `${whole(report.runs)} finished runs`}, ${whole(report.scored)} with a score.`}</p>
        <Measures contrast={report.history} given="With history" without="Without" />
      </section>
      <section>
        <h2>What cannot be concluded</h2>
        <ul className="effect-limits">
          {report.limits.map((limit) => (
            <li key={limit}>{limit}</li>
          ))}
        </ul>
      </section>
      {report.draws && (
        <section className="wide">
          <h2>By draws: all that was found, or one memory withheld</h2>
          <Measures contrast={report.draws} given="All shown" without="One withheld" />
        </section>
      )}
      <Contrasts title="By week" label="Week" parts={report.weeks} />
      <Contrasts title="By version" label="Version" parts={report.versions} />
      <Contrasts title="By task type" label="Task type" parts={report.task_types} />
      <section className="wide">
        <h2>Memories that helped and that harmed</h2>
        <Use report={report} />
        <Ranked title="Most helpful" memories={report.helpful} />
        <Ranked title="Most harmful" memories={report.harmful} />
      </section>
    </>
  );
}

function Alerts({ alerts }: Pick<Report, "alerts">) {
  if (alerts.length === 0) return null;
  return (
    <section className="wide">
      <h2>Severe issues that come back</h2>
      <ul className="effect-alerts">
        {alerts.map((alert) => (
          <li key={`${alert.case} ${alert.title}`}>
            <strong>{alert.severity}</strong> {alert.title} <span className="muted">{`${alert.case}: named in ${alert.versions.join(", ")}; ${alert.state}`}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Use({ report: { estimated_at: at, uses_effects: on } }: { readonly report: Report }) {
  const use = useEffectUse();
  return (
    <>
      <p className="muted">
        {at ? `Estimated ${exactMoment(at)}.` : "No effects were estimated yet. A worker does it once an hour, after a scored run has changed."}
      </p>
      <label className="only-failed">
        <input type="checkbox" checked={on} disabled={use.isPending} onChange={(event) => use.mutate(event.target.checked)} />
        Let known effects count in the ranking of this workspace
      </label>
    </>
  );
}
