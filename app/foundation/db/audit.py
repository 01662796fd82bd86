"""Notes who acts, and writes the audit log of what a transaction changes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from psycopg.pq.abc import PGresult

WORKER = "worker"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks for a change, by which operation."""

    who: str
    """`key NAME`, `token SUBJECT`, `panel`, `anyone`, `cli`, `worker`; `service` for what a process does by itself.
    The name of the panel's reviewer follows SIGNED."""
    operation: str = ""
    """A route, a command, a tool or a job."""
    request_id: str = ""
    key_id: UUID | None = None


_SERVICE = Actor("service")
_ACTOR: ContextVar[Actor] = ContextVar("ACTOR", default=_SERVICE)


def actor() -> Actor:
    """Returns the one on whose behalf this task works."""
    return _ACTOR.get()


def act_as(found: Actor) -> None:
    """Says on whose behalf this task works from now on."""
    _ACTOR.set(found)


@contextmanager
def acting_as(found: Actor) -> Iterator[None]:
    """Says on whose behalf this task works meanwhile."""
    token = _ACTOR.set(found)
    try:
        yield
    finally:
        _ACTOR.reset(token)


def note_operation(operation: str) -> None:
    """Names the operation once it is known."""
    _ACTOR.set(replace(_ACTOR.get(), operation=operation))


STORE = -1
"""The workspace of entries that concern the whole store: keys, and what upkeep destroys across workspaces."""
SIGNED = " · "
"""Stands between who asks and the name that a reviewer has given in the panel."""
_MOST_NAMED = 10
"""Objects of one entry whose state before and after is hashed. Beyond them it is a bulk write."""
_MOST_LISTED = 10_000
"""Objects of one entry that are named: as many as one request changes. What a bulk write adds is counted alone, because
an ingestion adds tens of thousands."""
_LONGEST_READ = 65_536
"""Characters of a statement's JSON in which its objects are looked for; longer ones are bulk writes."""
_ADDED, _CHANGED, _REMOVED, _EXPORTED, _ERASED = ACTIONS = "add", "change", "remove", "export", "erase"


class Audited(NamedTuple):
    """A table whose changes are logged."""

    object: str
    """The name of one of its objects."""
    key: Mapping[str, str]
    """The columns that name one in its workspace, with their types."""
    bookkeeping: frozenset[str] = frozenset()
    """Columns that count or mark: an UPDATE that sets one of them first is not logged."""
    derived: bool = False
    """True if a worker finds most of its rows: what a worker writes there is not logged."""
    read_log: bool = False
    """True if it logs reads: only what is removed from it is logged."""


def _audit_rule(
    object_name: str,
    /,
    *bookkeeping: str,
    derived: bool = False,
    read_log: bool = False,
    **key: str,
) -> Audited:
    return Audited(object_name, MappingProxyType(key), frozenset(bookkeeping), derived, read_log)


AUDITED: Mapping[str, Audited] = MappingProxyType(
    {
        "workspaces": _audit_rule(
            "workspace", "mean_length", "document_count", "has_users", "languages", workspace_id="bigint"
        ),
        "api_keys": _audit_rule("key", key_id="uuid"),
        "memories": _audit_rule("memory", "uses", memory_id="uuid"),
        "observations": _audit_rule("observation", memory_id="uuid"),
        "sources": _audit_rule("source", source_id="uuid"),
        "sessions": _audit_rule("session", "log_hash", "maker", "made_until", "extracted", source_id="uuid"),
        "runs": _audit_rule("run", run_id="text"),
        "feedback": _audit_rule("rating", feedback_id="uuid"),
        "cues": _audit_rule("cue", "fired", "model", memory_id="uuid"),
        "cue_proposals": _audit_rule("proposal", proposal_id="uuid"),
        "links": _audit_rule("link", derived=True, from_id="uuid", to_id="uuid"),
        "recalls": _audit_rule("recall", read_log=True, recall_id="uuid"),
        "activations": _audit_rule("activation", "settled_at", read_log=True, activation_id="uuid"),
        "contexts": _audit_rule("context", read_log=True, context_id="uuid"),
    }
)
UNAUDITED: Mapping[str, str] = MappingProxyType(
    {
        "audit": "it is the log",
        "embedding_models": "upkeep: the log of the service names a change of model",
        **dict.fromkeys(
            ("lexical", "lexeme_statistics", "embeddings", "pending_embeddings", "titles", "pending_links"),
            "made of memories",
        ),
        **dict.fromkeys(("recall_hits", "run_sections", "activation_cues"), "a part of what logs a read"),
        **dict.fromkeys(("messages", "artifacts", "artifact_touches", "session_acts"), "a part of a session's turns"),
        **dict.fromkeys(("cue_evidence", "cue_revisions"), "a part of a cue"),
        **dict.fromkeys(
            ("judgements", "issues", "issue_occurrences", "compressions", "effects", "effect_estimates"),
            "made of reports and runs",
        ),
        **dict.fromkeys(("ingestions", "refusals"), "logs"),
        "accesses": "counted from a log",
        "maps": "a cache",
    }
)

_WRITE = re.compile(
    r"\b(?:(INSERT)\s+INTO|(DELETE)\s+FROM|(UPDATE))\s+(?:ONLY\s+)?([a-z_]+)(?:\s+(?:AS\s+)?(?!SET\b)\w+)?(?:\s+SET\s+(\w+))?"
)


class Write(NamedTuple):
    """A statement that changes objects of one table."""

    action: str
    table: str
    partly: bool
    """True if a common table expression writes: the number of its rows is not that of the statement."""

    @property
    def audited(self) -> Audited:
        """The table."""
        return AUDITED[self.table]


@lru_cache(maxsize=1024)
def written_by(statement: str) -> Write | None:
    """Returns the audited write of a statement; None if it has none.

    Of several, it is the last into a table that is not derived.
    """
    found = list(_WRITE.finditer(statement))
    if any(match[1] and _is_read_log(match[4]) for match in found):
        return None
    logged = [match for match in found if _is_logged(match)]
    if not logged:
        return None
    writes = [match for match in logged if not AUDITED[match[4]].derived] or logged
    last = writes[-1]
    action = _ADDED if last[1] else _REMOVED if last[2] else _CHANGED
    if action == _ADDED and "DO UPDATE" in statement[last.end() :]:
        action = _CHANGED
    return Write(action, last[4], partly=len(writes) > 1)


def _is_read_log(table: str) -> bool:
    return table in AUDITED and AUDITED[table].read_log


def _is_logged(match: re.Match[str]) -> bool:
    audited = AUDITED.get(match[4])
    return audited is not None and not (match[3] and (audited.read_log or match[5] in audited.bookkeeping))


Key = tuple[str, ...]


def keys_in(write: Write, values: Mapping[str, Any]) -> list[Key]:
    """Returns the keys of the objects that a statement's values name, as far as they name them in a known way."""
    columns = tuple(write.audited.key)
    if all(name in values for name in columns):
        given: list[Any] = [values]
    elif len(columns) == 1 and isinstance(values.get("ids"), Sequence):
        given = [{columns[0]: item} for item in values["ids"]]
    elif isinstance(rows := values.get("rows"), str) and len(rows) <= _LONGEST_READ:
        given = [
            row for row in msgspec.json.decode(rows) if isinstance(row, dict) and all(name in row for name in columns)
        ]
    else:
        given = []
    return [tuple(str(item[name]) for name in columns) for item in given]


def _keys_of(write: Write, result: PGresult) -> list[Key]:
    """Returns the keys of the objects that a statement returns; none if it returns other columns."""
    names = [(result.fname(place) or b"").decode() for place in range(result.nfields)]
    if not all(name in names and not result.fformat(names.index(name)) for name in write.audited.key):
        return []
    places = [names.index(name) for name in write.audited.key]
    return [tuple((result.get_value(row, at) or b"").decode() for at in places) for row in range(result.ntuples)]


def fingerprint(write: Write, *, bound: bool) -> str:
    """Returns the SQL that hashes the rows of `%(k0)s`, … as they stand; NULL if none does."""
    types = write.audited.key
    arrays = ", ".join(f"%(k{place})s::{kind}[]" for place, kind in enumerate(types.values()))
    own = "t.workspace_id = %(workspace_id)s" if bound else "true"
    order = ", ".join(f"t.{name}" for name in types)
    return f"""
SELECT sha256(convert_to(string_agg(to_jsonb(t)::text, E'\\n' ORDER BY {order}), 'UTF8'))
FROM {write.table} t JOIN unnest({arrays}) AS given({", ".join(types)}) USING ({", ".join(types)}) WHERE {own}
"""  # noqa: S608 - names of AUDITED


@dataclass(slots=True)
class NotedChange:
    """A change of one kind to objects of one kind, in one transaction."""

    action: str
    object: str
    count: int = 0
    keys: set[Key] = field(default_factory=set)
    write: Write | None = None
    """The write whose objects are hashed; None for a bulk write or an export."""
    hashed: Sequence[Key] = ()
    """The objects that are hashed: some may not have changed."""
    before: bytes | None = None
    workspace_id: int | None = None
    """The workspace in whose log it stands, where that is not the session's."""


class ChangeLog:
    """The entries of one transaction."""

    def __init__(self) -> None:
        self._entries: dict[tuple[Any, ...], NotedChange] = {}
        self.home: int | None = None
        """The workspace in whose log its entries stand, where that is not the session's."""

    def takes(self, write: Write) -> bool:
        """Tells whether a write is logged on behalf of whoever asks for it."""
        return not (write.audited.derived and actor().who == WORKER)

    def lacks(self, write: Write, keys: Sequence[Key]) -> bool:
        """Tells whether the state of these objects before the first change to them is to be hashed."""
        return write.action != _ADDED and 0 < len(keys) <= _MOST_NAMED and self._place(write, keys) not in self._entries

    def note(self, write: Write, result: PGresult, *, given: Sequence[Key], before: bytes | None) -> None:
        """Notes a statement that has run."""
        returned = _keys_of(write, result)
        count = len(returned) or result.command_tuples or (len(given) if write.partly else 0)
        if not count:
            return
        keys = given if write.action != _ADDED and given else returned or given
        place = self._place(write, keys)
        if not 0 < len(keys) <= _MOST_NAMED or (place not in self._entries and len(self._entries) >= _MOST_NAMED):
            self._note_many(write, keys, count)
            return
        entry = self._entries.setdefault(
            place, NotedChange(write.action, write.audited.object, write=write, before=before)
        )
        entry.count, entry.keys, entry.hashed = max(entry.count, count), set(returned or keys), keys
        if write.action == _REMOVED:
            entry.action = _REMOVED

    def _note_many(self, write: Write, keys: Sequence[Key], count: int) -> None:
        entry = self._entries.setdefault((write.action, write.table), NotedChange(write.action, write.audited.object))
        entry.count += count
        entry.keys.update(keys)

    def note_export(self, what: str, count: int) -> None:
        """Notes that objects were given away."""
        self._entries[_EXPORTED, what] = NotedChange(_EXPORTED, what, count)

    def note_erasure(self, what: str, name: str, workspace_id: int | None) -> None:
        """Notes that a workspace or a user was erased, in the log of a workspace or in that of the store."""
        self._entries[_ERASED, what] = NotedChange(_ERASED, what, 1, keys={(name,)}, workspace_id=workspace_id)

    def take_entries(self) -> list[NotedChange]:
        """Returns the entries, and forgets them."""
        entries, self._entries = list(self._entries.values()), {}
        for entry in entries:
            entry.workspace_id = entry.workspace_id or self.home
        return entries

    @staticmethod
    def _place(write: Write, keys: Sequence[Key]) -> tuple[Any, ...]:
        return (write.table, *sorted(keys))


# Its id is a UUID of version 7, so that ids sort by time. Where nothing has changed there is no entry.
_INSERT = """
INSERT INTO audit (workspace_id, entry_id, who, operation, request_id, key_id, for_user, action, object, count, ids,
    ids_hash, before, after)
SELECT %(workspace)s::bigint, encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
        PLACING substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6),
        52, 1), 53, 1), 'hex')::uuid,
    %(who)s, %(operation)s, %(request_id)s, %(key_id)s::uuid, %(for_user)s, %(action)s, %(object)s, %(count)s::bigint,
    %(ids)s::text[], %(ids_hash)s::bytea, %(before)s::bytea, hashed.after
FROM (SELECT ({after}) AS after) AS hashed
WHERE hashed.after IS NULL OR hashed.after IS DISTINCT FROM %(before)s::bytea
ON CONFLICT DO NOTHING
"""
SWEEP = "DELETE FROM audit WHERE at < now() - make_interval(days => %(days)s)"


class Place(NamedTuple):
    """The workspace and the user whose objects a session changes."""

    workspace_id: int | None
    """None for all workspaces."""
    user: str


def insertions(entries: Sequence[NotedChange], place: Place) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields the statements that write entries, with their values; none for a workspace that is being made."""
    if place.workspace_id == 0:
        return
    by, bound = actor(), place.workspace_id is not None
    for entry in entries:
        names = sorted("/".join(key) for key in entry.keys)
        after, keys = "NULL::bytea", {}
        if entry.write is not None and entry.action != _REMOVED:
            after = fingerprint(entry.write, bound=bound)
            keys = key_values(entry.write, entry.hashed)
        yield (
            _INSERT.format(after=after),
            {
                **keys,
                "workspace": entry.workspace_id or STORE if place.workspace_id is None else place.workspace_id,
                "who": by.who,
                "operation": by.operation,
                "request_id": by.request_id,
                "key_id": None if by.key_id is None else str(by.key_id),
                "for_user": place.user,
                "action": entry.action,
                "object": entry.object,
                "count": entry.count,
                "ids": names if _is_listed(entry) else [],
                "ids_hash": sha256("\n".join(names).encode()).digest() if names else None,
                "before": entry.before,
            },
        )


def _is_listed(entry: NotedChange) -> bool:
    most = _MOST_NAMED if entry.action == _ADDED else _MOST_LISTED
    return len(entry.keys) <= most and (entry.action, entry.object) != (_ERASED, "user")


def key_values(write: Write, keys: Sequence[Key]) -> dict[str, list[str]]:
    """Returns the values of `fingerprint` for these objects."""
    return {f"k{place}": [key[place] for key in keys] for place in range(len(write.audited.key))}
