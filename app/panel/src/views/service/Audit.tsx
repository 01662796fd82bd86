import { useEffect, useState } from "react";
import { useChange } from "../../api/acts";
import { useService } from "../../api/client";
import type { AuditEntry } from "../../api/schema";
import { exactMoment, whole } from "../../parts/format";
import { Link } from "../../parts/Link";
import { OneLine } from "../../parts/OneLine";
import { SearchField } from "../../parts/SearchField";
import { Empty, Failure, Loading, More } from "../../parts/states";
import { changeAddress, linkTo, useAddress } from "../../state/address";

const PAGE = 100;
/** Entries. */
const PAUSE_MILLISECONDS = 300;
const SHOWN = 10;
/** Ids of an entry at first. */

/** Who changed what in the workspace, the latest first. */
export function Audit() {
  const { params } = useAddress();
  const asked = { who: (params.get("q") ?? "").trim(), id: params.get("id") ?? "" };
  const log = useService().useInfiniteQuery(
    "get",
    "/api/audit",
    { params: { query: { ...asked, limit: PAGE } } },
    { pageParamName: "before", initialPageParam: "", getNextPageParam: (last) => last.next },
  );
  useEffect(() => {
    document.title = "Audit · Priors";
  }, []);
  return (
    <section className="audit" aria-label="Audit log">
      <div className="run-filters">
        <SearchField text={asked.who} label="Who" placeholder="Who: panel · Ada, key scout, cli …" pause={PAUSE_MILLISECONDS} />
        {asked.id && (
          <button type="button" className="chip" onClick={() => changeAddress({ id: null })}>
            Only what names {asked.id} <span aria-hidden>×</span>
          </button>
        )}
      </div>
      {log.isError && !log.data && <Failure what="The audit log" error={log.error} retry={log.refetch} />}
      {log.isPending && <Loading what="the audit log" />}
      {log.data?.pages[0]?.entries.length === 0 && (
        <Empty title="No entry">
          <p>Each change to what is stored leaves an entry here; reads do not.</p>
        </Empty>
      )}
      <ol className="entries">
        {log.data?.pages.flatMap(({ entries }) => entries).map((entry) => (
          <Entry key={entry.id} entry={entry} asked={asked.id} />
        ))}
      </ol>
      <More pages={log} />
    </section>
  );
}

const VERBS: Readonly<Record<string, string>> = { add: "added", change: "changed", remove: "removed", export: "exported", erase: "erased" };
/** The routes whose work can be taken back, and by which change. */
const BACK = { "POST /api/memories:delete": "restore", "POST /api/memories:restore": "delete" } as const;

function Entry({ entry, asked }: { readonly entry: AuditEntry; readonly asked: string }) {
  const [all, setAll] = useState(false);
  const { who, operation, action, object, count, ids, at } = entry;
  const ordered = asked ? [asked, ...ids.filter((id) => id !== asked)] : ids;
  const back = object === "memory" && ids.length > 0 ? BACK[operation as keyof typeof BACK] : undefined;
  return (
    <li>
      <p>
        <strong>
          <OneLine text={who} />
        </strong>{" "}
        {(object === "memory" && verbOf(operation)) || (VERBS[action] ?? action)} {count === 1 ? `1 ${object}` : `${whole(count)} ${object === "memory" ? "memories" : `${object}s`}`}
        <time className="muted" dateTime={at}>
          {exactMoment(at)}
        </time>
      </p>
      <p className="row-facts">
        <span>{operation}</span>
        {ordered.slice(0, all ? undefined : SHOWN).map((id) => (object === "memory" || object === "cue" ? <Memory key={id} id={id} /> : <code key={id}>{id}</code>))}
        {ordered.length > SHOWN && !all && (
          <button type="button" className="quiet" onClick={() => setAll(true)}>
            all {whole(ordered.length)}
          </button>
        )}
        {back && <Undo verb={back} ids={ids} />}
      </p>
    </li>
  );
}

function verbOf(operation: string): string | undefined {
  const verb = /memories:(delete|restore|supersede|quarantine|tag|untag)$/.exec(operation)?.[1];
  return verb && { delete: "deleted", restore: "restored", supersede: "replaced", quarantine: "quarantined", tag: "tagged", untag: "untagged" }[verb];
}

function Memory({ id }: { readonly id: string }) {
  return (
    <Link href={linkTo("/memory", { memory: id })} title="Open it">
      <code>{id.slice(0, 8)}…{id.slice(-4)}</code>
    </Link>
  );
}

function Undo({ verb, ids }: { readonly verb: "restore" | "delete"; readonly ids: readonly string[] }) {
  const change = useChange(verb);
  return (
    <button type="button" disabled={change.isPending} onClick={() => change.mutate(ids)}>
      {verb === "restore" ? "Restore all of them" : "Delete all of them again"}
    </button>
  );
}
