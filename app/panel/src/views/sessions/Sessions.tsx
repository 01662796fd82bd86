import { useEffect, useMemo } from "react";
import { useSearch } from "../../api/memories";
import { useSessions } from "../../api/sessions";
import { dayAfter, startOf } from "../../parts/days";
import { excerptOf, termsOf } from "../../parts/excerpt";
import { isNarrowed } from "../../parts/FilterFrame";
import { day, whole } from "../../parts/format";
import { Link } from "../../parts/Link";
import { ListPane } from "../../parts/ListPane";
import { Marked, Pieces } from "../../parts/Marked";
import { OneLine } from "../../parts/OneLine";
import { Empty, fetchAt, More } from "../../parts/states";
import { linkWith, useAddress } from "../../state/address";
import { focusTitle } from "../../state/focus";
import { useListKeys } from "../../state/stepping";
import { readAsked } from "./asked";
import { type Found, foundIn } from "./found";
import { SessionDetail } from "./SessionDetail";
import { SessionFilters } from "./SessionFilters";

/** The conversations and work logs of agents, and beside them the transcript of the one that is open. */
export function Sessions() {
  const { params } = useAddress();
  const { filters, open, turn } = useMemo(() => readAsked(params), [params]);
  const pages = useSessions(filters);
  const { text, since, until, path } = filters;
  // A search of what was said knows no files.
  const said = useSearch(path === "" ? text : "", { kinds: ["message"], since: since ? startOf(since) : null, until: until ? dayAfter(until) : null });
  const sessions = useMemo(() => pages.data?.pages.flatMap((page) => page.sessions) ?? [], [pages.data]);
  const found = useMemo(() => foundIn(sessions, text && path === "" ? (said.data?.hits ?? []) : []), [sessions, said.data, text, path]);
  const ids = found.map(({ id }) => id);
  const close = useListKeys({
    parameter: "session",
    ids,
    open,
    lineOf,
    reach: (place) => fetchAt(pages, place, ids.length),
    others: (id) => ({ turn: turnOf(found.find((one) => one.id === id)) }),
  });
  const terms = useMemo(() => termsOf(text), [text]);
  useEffect(() => {
    document.title = "Sessions · Priors";
  }, []);
  return (
    <div className={`runs sessions ${open ? "with-detail" : ""}`}>
      <ListPane
        name="sessions"
        query={pages}
        nothing={found.length === 0 && !isNarrowed(filters) && <Nothing />}
        toolbar={<SessionFilters filters={filters} />}
      >
        {found.length === 0 && !said.isFetching && <p className="members-none">No session matches these filters.</p>}
        <ol>
          {found.map((one) => (
            <Row key={one.id} found={one} open={one.id === open} terms={terms} />
          ))}
        </ol>
        <More pages={pages} />
      </ListPane>
      {open && <SessionDetail key={open} id={open} turn={turn} onClose={close} />}
    </div>
  );
}

function Nothing() {
  return (
    <Empty title="No sessions yet">
      <p>
        Ingest session logs with <code>priors ingest PATH</code>, or send them to <code>POST /api/sessions</code>.
      </p>
    </Empty>
  );
}

function turnOf(found: Found | undefined): string | null {
  const ordinal = found?.turn?.ordinal ?? null;
  return ordinal === null ? null : String(ordinal);
}

function lineOf(id: string): string {
  return `session-${id}`;
}

interface RowProps {
  readonly found: Found;
  readonly open: boolean;
  readonly terms: readonly string[];
}

function Row({ found, open, terms }: RowProps) {
  const { id, title, at, session, turn } = found;
  return (
    <li id={lineOf(id)}>
      <Link className="row" href={linkWith({ session: id, turn: turnOf(found) })} aria-current={open ? "true" : undefined} onClick={open ? focusTitle : undefined}>
        <span className="row-title">
          <Marked text={title || id} terms={terms} />
        </span>
        <span className="row-marks">{turn && <span className="muted">turn {turn.ordinal}</span>}</span>
        {turn && (
          <span className="row-excerpt" dir="auto">
            <Pieces text={excerptOf(turn.body, turn.title, terms)} terms={terms} />
          </span>
        )}
        <span className="row-facts">
          <span className="kind">
            <OneLine text={id} />
          </span>
          {session && <span>{session.turns === 1 ? "1 turn" : `${whole(session.turns)} turns`}</span>}
          {session && <span className="extra">{session.format}</span>}
          {at && (
            <span className="dates">
              <time dateTime={at}>{day(at)}</time>
            </span>
          )}
        </span>
      </Link>
    </li>
  );
}
