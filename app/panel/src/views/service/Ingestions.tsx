import { useState } from "react";
import { useService } from "../../api/client";
import { KEPT } from "../../api/queries";
import type { IngestionView } from "../../api/schema";
import { exactMoment, whole } from "../../parts/format";
import { Empty, Failure, Loading, More } from "../../parts/states";
import { type Column, Table } from "../../parts/Table";

const FILES_AT_FIRST = 100;
const AT_ONCE = 20;
/** Ingestions: each names the files that it changed. */
const REFRESH_MILLISECONDS = 10_000;

/** The log, newest first, and as far back as somebody asks. */
export function Ingestions() {
  const [onlyFailed, setOnlyFailed] = useState(false);
  const log = useService().useInfiniteQuery(
    "get",
    "/api/ingestions",
    { params: { query: { limit: AT_ONCE, failed: onlyFailed } } },
    {
      ...KEPT,
      pageParamName: "before",
      initialPageParam: "",
      getNextPageParam: (last) => (last.length === AT_ONCE ? last.at(-1)?.id : undefined),
      refetchInterval: REFRESH_MILLISECONDS,
    },
  );
  if (log.isError && !log.data) return <Failure what="The log" error={log.error} retry={log.refetch} />;
  if (!log.data) return <Loading what="ingestions" />;
  const ingestions = log.data.pages.flat();
  if (ingestions.length === 0 && !onlyFailed) return <Nothing />;
  return (
    <>
      <label className="only-failed">
        <input type="checkbox" checked={onlyFailed} onChange={(event) => setOnlyFailed(event.target.checked)} />
        Only ingestions with failed files
      </label>
      {ingestions.length === 0 ? <p className="muted">No ingestion has failed files.</p> : <Log ingestions={ingestions} />}
      <More pages={log} />
    </>
  );
}

function Nothing() {
  return (
    <Empty title="No reports ingested yet">
      <p>
        Run <code>priors ingest reports/</code> (add <code>--watch</code> to follow changes), or send a report to{" "}
        <code>POST /api/reports</code>.
      </p>
    </Empty>
  );
}

function Log({ ingestions }: { readonly ingestions: readonly IngestionView[] }) {
  return (
    <ol className="ingestions">
      {ingestions.map((ingestion) => (
        <li key={ingestion.id}>
          <details>
            <summary>
              <time dateTime={ingestion.finished_at}>{exactMoment(ingestion.finished_at)}</time>
              <span className="outcomes">
                {Object.entries(ingestion.counts).map(([status, count]) => (
                  <span key={status} className={`outcome ${status}`}>
                    {whole(count)} {status}
                  </span>
                ))}
                {ingestion.files.length === 1 && <span className="muted">{ingestion.files[0]?.path}</span>}
              </span>
              <span className="muted">{ingestion.seconds.toFixed(1)} s</span>
            </summary>
            {ingestion.degraded && <p className="degradation">Stored without vectors: {ingestion.degraded}</p>}
            <Files ingestion={ingestion} />
          </details>
        </li>
      ))}
    </ol>
  );
}

function Files({ ingestion: { files } }: { readonly ingestion: IngestionView }) {
  const [all, setAll] = useState(files.length <= FILES_AT_FIRST);
  return (
    <>
      <Table label="Files" columns={COLUMNS} rows={all ? files : files.slice(0, FILES_AT_FIRST)} keyOf={({ path }) => path} />
      {!all && (
        <button type="button" className="quiet" onClick={() => setAll(true)}>
          Show all {whole(files.length)}
        </button>
      )}
    </>
  );
}

const COLUMNS: readonly Column<IngestionView["files"][number]>[] = [
  { name: "File", cell: ({ path }) => path },
  {
    name: "Outcome",
    cell: ({ status, reason, notes }) => (
      <>
        <span className={`outcome ${status}`}>{status}</span>
        {[reason, ...notes].filter(Boolean).map((said) => (
          <span key={said} className="muted">
            {" "}
            {said}
          </span>
        ))}
      </>
    ),
  },
  { name: "Chunks", kind: "number", cell: ({ chunks }) => whole(chunks) },
  { name: "New", kind: "number", cell: ({ stored }) => whole(stored) },
  { name: "Noise", kind: "number", cell: ({ noise }) => whole(noise) },
  { name: "Quarantined", kind: "number", cell: ({ quarantined }) => whole(quarantined) },
];
