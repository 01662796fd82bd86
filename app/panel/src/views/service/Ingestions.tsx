import { useState } from "react";
import { useService } from "../../api/client";
import { KEPT } from "../../api/queries";
import type { LoggedIngestion } from "../../api/schema";
import { exactMoment, whole } from "../../parts/format";
import { Empty, Failure, Folded, Loading, More } from "../../parts/states";
import { type Column, Table } from "../../parts/Table";

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
  if (log.isLoadingError) return <Failure what="The log of ingestions" error={log.error} retry={log.refetch} />;
  if (!log.data) return <Loading what="the log of ingestions" />;
  const ingestions = log.data.pages.flat();
  if (ingestions.length === 0 && !onlyFailed) {
    return (
      <Empty title="No reports ingested yet">
        Run <code>priors ingest reports/</code> (add <code>--watch</code> to follow changes), or send a report to{" "}
        <code>POST /api/reports</code>.
      </Empty>
    );
  }
  return (
    <>
      <label className="only-failed">
        <input type="checkbox" checked={onlyFailed} onChange={(event) => setOnlyFailed(event.target.checked)} />
        Only ingestions with failed files
      </label>
      {ingestions.length === 0 && <p className="muted">No ingestion has failed files.</p>}
      <ol className="ingestions">
        {ingestions.map((ingestion) => (
          <Line key={ingestion.id} ingestion={ingestion} />
        ))}
      </ol>
      <More pages={log} />
    </>
  );
}

function Line({ ingestion: { finished_at, counts, files, seconds, degraded } }: { readonly ingestion: LoggedIngestion }) {
  const label = (
    <>
      <time dateTime={finished_at}>{exactMoment(finished_at)}</time>
      <span className="outcomes">
        {Object.entries(counts).map(([status, count]) => (
          <span key={status} className={`outcome ${status}`}>
            {whole(count)} {status}
          </span>
        ))}
        {files.length === 1 && <span className="muted">{files[0]?.path}</span>}
      </span>
      <span className="muted">{seconds.toFixed(1)} s</span>
    </>
  );
  return (
    <li>
      <Folded label={label}>
        {degraded && <p className="degradation">Stored without vectors: {degraded}</p>}
        <Table label="Files" columns={COLUMNS} rows={files} keyOf={({ path }) => path} />
      </Folded>
    </li>
  );
}

const COLUMNS: readonly Column<LoggedIngestion["files"][number]>[] = [
  { name: "File", cell: ({ path }) => path },
  {
    name: "Outcome",
    cell: ({ status, reason, notes }) => (
      <>
        <span className={`outcome ${status}`}>{status}</span>
        {[reason, ...notes].filter(Boolean).map((said) => (
          <span key={said} className="muted">{` ${said}`}</span>
        ))}
      </>
    ),
  },
  { name: "Chunks", kind: "number", cell: ({ chunks }) => whole(chunks) },
  { name: "New", kind: "number", cell: ({ stored }) => whole(stored) },
  { name: "Noise", kind: "number", cell: ({ noise }) => whole(noise) },
  { name: "Quarantined", kind: "number", cell: ({ quarantined }) => whole(quarantined) },
];
