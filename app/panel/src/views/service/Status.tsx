import { useService } from "../../api/client";
import { useStatus } from "../../api/queries";
import type { StatusView as Found, Latency } from "../../api/schema";
import { bytes, milliseconds, share, whole } from "../../parts/format";
import { Facts } from "../../parts/pane";
import { Answered } from "../../parts/states";
import { type Column, Table } from "../../parts/Table";
import { useTitle } from "../../state/title";
import { Ingestions } from "./Ingestions";
import { Trends } from "./Trends";

const TREND_DAYS = 30;

/** The state of the service and the workspace, at most ten seconds old. */
export function Status() {
  const status = useStatus();
  useTitle("Health");
  return (
    <div className="status">
      <Answered query={status} name="health of the service">
        {(data) => <Whole status={data} />}
      </Answered>
      <section className="wide">
        <h2>Ingestions</h2>
        <Ingestions />
      </section>
    </div>
  );
}

function Whole({ status }: { readonly status: Found }) {
  const trends = useService().useQuery("get", "/api/recalls:trends", { params: { query: { days: TREND_DAYS } } }).data ?? [];
  return (
    <>
      <section>
        <h2>Service</h2>
        <Facts
          facts={[
            ["Mode", <span className={`mode ${status.reasons.length ? "degraded" : ""}`}>{status.mode}</span>],
            ...status.reasons.map((reason) => ["Reason", reason] as const),
            [
              "Vectors",
              status.waiting === 0 ? "All memories have a vector" : `${whole(status.live - status.waiting)} of ${whole(status.live)}`,
            ],
            ["Links", pendingOf(status.pending_links)],
            ["Model", status.model],
            ["Version", status.version],
            [
              "Database",
              <>
                {bytes(status.database_bytes)} in all workspaces{" "}
                <span className="muted">
                  Postgres {status.postgres.split(" ")[0]}, pgvector {status.pgvector}, schema {status.revision ?? "none"}
                </span>
              </>,
            ],
          ]}
        />
      </section>
      <section>
        <h2>Workspace</h2>
        <Facts
          facts={[
            [
              "Name",
              <>
                {status.workspace} <span className="muted">{status.language || "(nothing has been stored in this workspace)"}</span>
              </>,
            ],
            ["Live memories", whole(status.live)],
            ["Retired", listed(status.retired) || "None"],
            ["Refused", listed(status.refused) || "None"],
            ["Sources", whole(status.sources)],
            ["Runs", whole(status.runs)],
            ["Recalls", whole(status.recalls)],
          ]}
        />
      </section>
      <section className="plots">
        <h2>Response times</h2>
        {status.latencies.length === 0 && <p className="muted">No recalls yet. Try one with t.</p>}
        <Table label="Response times" columns={COLUMNS} rows={status.latencies} keyOf={({ purpose }) => purpose} />
      </section>
      <section className="plots">
        <h2>Recalls of the last 30 days</h2>
        {trends.some(({ recalls }) => recalls > 0) ? <Trends days={trends} /> : <p className="muted">No recalls of agents yet.</p>}
      </section>
    </>
  );
}

const MOST_COUNTED = 100_000;
/** The service counts no further than this. */

function pendingOf(links: number): string {
  if (links === 0) return "All memories are linked";
  if (links === 1) return "1 memory is pending for links";
  return `${whole(links)}${links >= MOST_COUNTED ? " or more" : ""} memories are pending for links`;
}

function listed(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${whole(count)} ${name.replace("_", " ")}`)
    .join(", ");
}

/** Of the latest recalls: half took no longer than p50, 95 in 100 no longer than p95, 99 no longer than p99. */
const COLUMNS: readonly Column<Latency>[] = [
  { name: "Purpose", cell: ({ purpose }) => purpose },
  { name: "p50", kind: "number", cell: ({ p50 }) => milliseconds(p50) },
  { name: "p95", kind: "number", cell: ({ p95 }) => milliseconds(p95) },
  { name: "p99", kind: "number", cell: ({ p99 }) => milliseconds(p99) },
  { name: "Recalls", kind: "number", cell: ({ recalls }) => whole(recalls) },
  { name: "Hybrid", kind: "number", cell: ({ hybrid }) => share(hybrid) },
];
