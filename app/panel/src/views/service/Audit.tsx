import { useRef, useState } from "react";
import { useChange } from "../../api/acts";
import { useService } from "../../api/client";
import type { AuditEntry } from "../../api/schema";
import { exactMoment, whole } from "../../parts/format";
import { MemoryLink } from "../../parts/MemoryLink";
import { SearchField } from "../../parts/SearchField";
import { Empty, Failure, Loading, More } from "../../parts/states";
import { OneLine } from "../../parts/text";
import { changeAddress, useAddress } from "../../state/address";
import { useFirst } from "../../state/search";
import { useTitle } from "../../state/title";

const PAGE = 100;
/** Entries. */
const SHOWN = 10;
/** Ids of an entry at first; those of links say nothing to a reader. */

/** Who changed what in the workspace, the latest first. */
export function Audit() {
  const { params } = useAddress();
  const [text, id] = [(params.get("q") ?? "").trim(), params.get("id") ?? ""];
  const log = useService().useInfiniteQuery(
    "get",
    "/api/audit",
    { params: { query: { id: text || id, limit: PAGE } } },
    { pageParamName: "before", initialPageParam: "", getNextPageParam: (last) => last.next },
  );
  const entries = log.data?.pages.flatMap((page) => page.entries) ?? [];
  const left = standing(entries);
  const list = useRef<HTMLOListElement>(null);
  // Enter restores; it never deletes, which a second Enter after a restoration would do.
  useFirst(log.isSuccess && !log.isPlaceholderData, () =>
    (list.current?.querySelector<HTMLElement>("li:first-child .restore") ?? list.current?.querySelector("a"))?.focus(),
  );
  useTitle("Audit");
  return (
    <section className="audit" aria-label="Audit log">
      <div className="run-filters">
        <SearchField text={text} label="Search the log" placeholder="Who, or words of a memory" />
        {id && !text && (
          <button type="button" className="chip" onClick={() => changeAddress({ id: null })}>
            Only what names {id} <span aria-hidden>×</span>
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
      <ol className="entries" ref={list}>
        {entries.map((entry) => (
          <Entry key={entry.id} entry={entry} asked={id} left={left.get(entry.id) ?? []} />
        ))}
      </ol>
      <More pages={log} />
    </section>
  );
}

const VERBS: Readonly<Record<string, string>> = { add: "added", change: "changed", remove: "removed", export: "exported", erase: "erased" };
/** What can be taken back, and by which change. */
const BACK: Readonly<Record<string, "restore" | "delete">> = { deleted: "restore", restored: "delete" };

/** The memories of each entry whose state no later entry has changed. */
function standing(entries: readonly AuditEntry[]): ReadonlyMap<string, readonly string[]> {
  const changed = new Set<string>();
  return new Map(
    entries.map(({ id, object, operation, ids }) => {
      const left = ids.filter((one) => !changed.has(one));
      if (object === "memory" && BACK[verbOf(operation) ?? ""]) for (const one of ids) changed.add(one);
      return [id, left];
    }),
  );
}

interface EntryProps {
  readonly entry: AuditEntry;
  readonly asked: string;
  /** Those of its memories that can still be taken back. */
  readonly left: readonly string[];
}

function Entry({ entry, asked, left }: EntryProps) {
  const [all, setAll] = useState(false);
  const { who, operation, action, object, count, ids, titles, at } = entry;
  const named = ids.map((id, place) => ({ id, title: titles?.[place] ?? "" }));
  const ordered = [...named].sort((one, other) => Number(other.id === asked) - Number(one.id === asked));
  const shown = object === "link" ? 0 : SHOWN;
  // The undo of a rating is stored as one more row.
  const undone = object === "rating" && operation.startsWith("DELETE") ? "undid" : undefined;
  const verb = object === "memory" ? verbOf(operation) : undone;
  const back = verb && left.length > 0 ? BACK[verb] : undefined;
  return (
    <li>
      <p>
        <strong>
          <OneLine text={who} />
        </strong>{" "}
        {verb ?? VERBS[action] ?? action}{" "}
        {count === 1 ? `1 ${object}` : `${whole(count)} ${object === "memory" ? "memories" : `${object}s`}`}
        <time className="muted" dateTime={at}>
          {exactMoment(at)}
        </time>
      </p>
      <p className="row-facts">
        <span>{operation}</span>
        {ordered
          .slice(0, all ? undefined : shown)
          .map(({ id, title }) =>
            OF_MEMORIES.has(object) ? (
              <MemoryLink key={id} id={id} title={title || `${id.slice(0, 8)}…${id.slice(-4)}`} />
            ) : (
              <code key={id}>{id}</code>
            ),
          )}
        {ordered.length > shown && !all && (
          <button type="button" className="quiet" onClick={() => setAll(true)}>{`all ${whole(ordered.length)}`}</button>
        )}
        {back && <Undo verb={back} ids={left} all={left.length === ids.length} />}
      </p>
    </li>
  );
}

function verbOf(operation: string): string | undefined {
  return CHANGED[operation.replace("PATCH /api/memories ", "")];
}

/** By the state that a change asks for. */
const CHANGED: Readonly<Record<string, string>> = {
  deleted: "deleted",
  live: "restored",
  superseded: "replaced",
  quarantined: "quarantined",
  tag: "tagged",
  untag: "untagged",
};

const OF_MEMORIES: ReadonlySet<string> = new Set(["memory", "observation", "cue"]);
/** Objects that have the ids of memories. */

function Undo({ verb, ids, all }: { readonly verb: "restore" | "delete"; readonly ids: readonly string[]; readonly all: boolean }) {
  const change = useChange(verb);
  if (change.isSuccess) return null;
  const what = `${all ? "all" : whole(ids.length)} of them`;
  return (
    <button type="button" className={verb} disabled={change.isPending} onClick={() => change.mutate(ids)}>
      {verb === "restore" ? `Restore ${what}` : `Delete ${what} again`}
    </button>
  );
}
