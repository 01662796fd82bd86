"""The SQL that reads, writes and retires memories with their observation fields, and counts refusals and accesses."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from operator import attrgetter
from uuid import UUID

import msgspec
import psycopg
from msgspec import structs

from app.foundation.db.session import Row, Session
from app.foundation.values import frozen
from app.storage.index.indexing import THESE, forget_memories
from app.storage.links import store as links
from app.storage.memories.memory import GONE, Identity, Memory, MemoryRow, StoredObservation
from app.storage.tenants import store as tenants

# A memory that is destroyed meanwhile is left out; one that is kept cannot be destroyed before the transaction ends.
_ADD_ACCESSES = f"""
WITH kept AS MATERIALIZED (
    SELECT memory_id FROM memories WHERE {THESE} ORDER BY memory_id FOR KEY SHARE
)
INSERT INTO accesses AS a (workspace_id, memory_id, access_count, accessed_at)
SELECT %(workspace_id)s, memory_id, given.count, given.latest
FROM unnest(%(ids)s::uuid[], %(counts)s::int[], %(latest)s::timestamptz[]) AS given(memory_id, count, latest)
JOIN kept USING (memory_id) ORDER BY memory_id
ON CONFLICT (workspace_id, memory_id) DO UPDATE SET
    access_count = a.access_count + EXCLUDED.access_count,
    accessed_at = greatest(a.accessed_at, EXCLUDED.accessed_at)
"""  # noqa: S608 - constants


@frozen
class Access:
    """The recalls among some that gave a memory."""

    memory_id: UUID
    count: int
    latest: datetime
    """The moment of the last of them."""


async def add_accesses(session: Session, accesses: Sequence[Access]) -> None:
    """Adds recalls to the counts of memories; those of destroyed memories are left out.

    Rows are locked in the order of their ids.
    """
    if accesses:
        lists = ([item.memory_id for item in accesses], [item.count for item in accesses])
        latest = [item.latest for item in accesses]
        await session.execute(_ADD_ACCESSES, {"ids": lists[0], "counts": lists[1], "latest": latest})


SUSPECT = """jsonb_path_exists(m.findings, '$[*].severity ? (@ == "suspect")') AND NOT m.released"""
"""The condition of a memory that stands in no history until a person releases it."""
COLUMNS = f"""
    m.memory_id, m.kind, m.title, m.body, m.language, m.source_id, s.kind AS source_kind, s.uri AS source_uri,
    s.title AS source_title, m.ordinal, m.occurred_at, m.tags, m.metadata, m.run_id, m.final_score, m.quality,
    m.tokens, m.uses, m.created_at, m.valid_until, m.retired_as, m.findings, m.user_id AS "user",
    coalesce({SUSPECT}, false) AS suspect, a.accessed_at, coalesce(a.access_count, 0) AS access_count
"""
JOINED = "memories m LEFT JOIN sources s USING (workspace_id, source_id)"
COUNTED = f"{JOINED} LEFT JOIN accesses a ON a.workspace_id = m.workspace_id AND a.memory_id = m.memory_id"
"""The tables of COLUMNS."""
SHOWN = f"{COUNTED} LEFT JOIN observations o ON o.workspace_id = m.workspace_id AND o.memory_id = m.memory_id"
SHOWN_COLUMNS = f"""{COLUMNS},
    CASE WHEN o.memory_id IS NOT NULL THEN jsonb_build_object(
        'task', o.task, 'task_type', o.task_type, 'narrative', o.narrative, 'facts', o.facts,
        'output_path', o.output_path, 'verdict', o.verdict, 'compressor', o.compressor, 'model', o.model,
        'superseded_by', o.superseded_by
    ) END AS observation
"""
"""All columns of a memory that people see; COLUMNS has the columns of a recall."""

_READ = f"""
SELECT {SHOWN_COLUMNS} FROM {SHOWN} WHERE m.workspace_id = %(workspace_id)s AND m.memory_id = ANY(%(ids)s::uuid[])
"""  # noqa: S608 - constants

_FIND_KNOWN = """
SELECT m.memory_id, m.content_hash, m.kind, m.source_id, m.ordinal, m.tags, m.metadata, m.run_id, m.final_score,
    m.occurred_at, m.findings
FROM memories m
WHERE m.workspace_id = %(workspace_id)s AND m.valid_until IS NULL AND m.content_hash = ANY(%(hashes)s::bytea[])
"""

HAPPENED = "CASE WHEN m.kind = 'chunk' THEN m.occurred_at ELSE coalesce(m.occurred_at, m.created_at) END"
"""The moment of a memory: when it was stored, if its writer says nothing else. A report may be old when it is stored,
so an undated chunk has none."""

_WRITTEN = """memory_id, kind, source_id, ordinal, title, body, language, tags, metadata, run_id, final_score, tokens,
    occurred_at, content_hash, findings, retired_as"""
_INSERT = f"""
INSERT INTO memories (workspace_id, {_WRITTEN}, valid_until)
SELECT %(workspace_id)s, {_WRITTEN}, CASE WHEN retired_as IS NOT NULL THEN now() END
FROM jsonb_populate_recordset(NULL::memories, %(rows)s::jsonb)
ON CONFLICT DO NOTHING RETURNING memory_id
"""  # noqa: S608 - constants
_UPDATE = """
UPDATE memories m
SET tags = given.tags, metadata = given.metadata, run_id = given.run_id, final_score = given.final_score,
    occurred_at = given.occurred_at, ordinal = given.ordinal, findings = given.findings,
    released = m.released AND (%(revive)s OR m.findings IS NOT DISTINCT FROM given.findings),
    valid_until = CASE WHEN %(revive)s THEN NULL ELSE m.valid_until END,
    retired_as = CASE WHEN %(revive)s THEN NULL ELSE m.retired_as END
FROM jsonb_populate_recordset(NULL::memories, %(rows)s::jsonb) AS given
WHERE m.workspace_id = %(workspace_id)s AND m.memory_id = given.memory_id
"""

_LOCK = f"SELECT 1 FROM memories WHERE {THESE} ORDER BY memory_id FOR NO KEY UPDATE"  # noqa: S608 - constants
_RETIRE = f"""
UPDATE memories SET valid_until = now(), retired_as = %(reason)s
WHERE {THESE} AND (valid_until IS NULL OR coalesce(retired_as, 'gone') = ANY(%(over)s)) RETURNING memory_id
"""  # noqa: S608 - constants

_OBSERVED = "memory_id, task, task_type, narrative, facts, output_path, verdict, compressor, model, prompt, queries"
_DETAILS = ("task", "task_type", "narrative", "output_path", "verdict")


def _merge(first: str, other: str) -> str:
    """Returns the statement that merges observations `EXCLUDED` into known ones `o`: a value of `first` goes first.

    An empty value replaces nothing. No parameter stands after ON CONFLICT, where Citus loses the types of the others.
    """
    merged = {name: f"coalesce(nullif({first}.{name}, ''), {other}.{name})" for name in _DETAILS}
    merged["facts"] = f"CASE WHEN {first}.facts = '{{}}' THEN {other}.facts ELSE {first}.facts END"
    merged["queries"] = "ARRAY(SELECT DISTINCT unnest(o.queries || EXCLUDED.queries) ORDER BY 1)"
    return f"""
INSERT INTO observations AS o (workspace_id, {_OBSERVED})
SELECT %(workspace_id)s, {_OBSERVED} FROM jsonb_populate_recordset(NULL::observations, %(rows)s::jsonb)
ON CONFLICT (workspace_id, memory_id) DO UPDATE SET {", ".join(f"{name} = {value}" for name, value in merged.items())}
WHERE (o.{", o.".join(merged)}) IS DISTINCT FROM ({", ".join(merged.values())})
RETURNING memory_id
"""  # noqa: S608 - constants


_MERGE_GIVEN, _MERGE_KNOWN = _merge("EXCLUDED", "o"), _merge("o", "EXCLUDED")


_ADD_REFUSALS = """
INSERT INTO refusals AS r (workspace_id, reason, count)
SELECT %(workspace_id)s, reason, count FROM unnest(%(reasons)s::text[], %(counts)s::bigint[]) AS given(reason, count)
ON CONFLICT (workspace_id, reason) DO UPDATE SET count = r.count + EXCLUDED.count, last_at = EXCLUDED.last_at
"""

_REFUSALS_OF_ALL = "SELECT reason, sum(count)::bigint AS total FROM refusals GROUP BY reason"


class TooManyWords(Exception):
    """A text has more distinct words than the text index can hold."""


@contextmanager
def word_limit() -> Iterator[None]:
    """Raises TooManyWords if the database refuses such a text."""
    try:
        yield
    except psycopg.errors.ProgramLimitExceeded as error:
        raise TooManyWords from error


_FORGET_USER = """
DELETE FROM memories WHERE workspace_id = %(workspace_id)s AND user_id = %(user)s RETURNING memory_id, kind
"""


async def get(session: Session, memory_id: UUID) -> Memory | None:
    """Returns a memory, live or retired."""
    return (await read_all(session, [memory_id])).get(memory_id)


async def read_all(session: Session, ids: Iterable[UUID]) -> dict[UUID, Memory]:
    """Returns these memories, live or retired, by id; those that were destroyed are missing."""
    return {row.memory_id: memory_of(row) for row in await session.rows(_READ, {"ids": ids})}


_fields_of = attrgetter(*Memory.__slots__)


def memory_of(row: Row) -> Memory:
    """Returns the memory of a row with SHOWN_COLUMNS."""
    values = dict(zip(Memory.__slots__, _fields_of(row), strict=True))
    values["tags"] = tuple(row.tags)
    values["observation"] = None if row.observation is None else msgspec.convert(row.observation, StoredObservation)
    return Memory(**values)


async def find_known(session: Session, rows: Sequence[MemoryRow]) -> dict[Identity, Row]:
    """Returns the live memories with the same content as one of these rows, by their identity."""
    found = await session.rows(_FIND_KNOWN, {"hashes": list({row.content_hash for row in rows})})
    return {(bytes(row.content_hash), row.kind, row.source_id, row.ordinal): row for row in found}


async def insert(session: Session, rows: Sequence[MemoryRow]) -> set[UUID]:
    """Writes new memories; returns the ids of the inserted ones, without known ones.

    They are written in the order of their identity, so that two writers of the same memories do not deadlock.
    """
    if not rows:
        return set()
    if session.user:
        await tenants.note_users(session)
    ordered = sorted(rows, key=lambda row: [str(part) for part in row.identity])
    return set(await session.column(_INSERT, {"rows": as_json([row.json for row in ordered])}))


async def lock(session: Session, ids: Collection[UUID]) -> int:
    """Locks memories against other writers, in the order of their ids; returns the number of existing ones.

    Readers do not wait, and new references to the memories do not either.
    """
    return await session.execute(_LOCK, {"ids": ids}) if ids else 0


async def update(session: Session, rows: Sequence[MemoryRow], *, revive: bool = False) -> None:
    """Gives known memories (by `memory_id`) new tags, metadata, findings, run, score, date and ordinal.

    With `revive` they become live again; the caller indexes them. Rows are locked in the order of their ids.
    """
    if not rows:
        return
    ordered = sorted(rows, key=lambda row: row.memory_id)
    await lock(session, [row.memory_id for row in ordered])
    await session.execute(_UPDATE, {"rows": as_json([row.json for row in ordered]), "revive": revive})


async def retire(
    session: Session, ids: Sequence[UUID], *, reason: str = GONE, over: Sequence[str] = ()
) -> Sequence[UUID]:
    """Takes live memories out of retrieval; also gives memories that are retired for a reason in `over` this reason.

    They keep their row, ratings and provenance. Returns the changed memories.
    """
    if not ids:
        return ()
    await lock(session, ids)
    retired = await session.column(_RETIRE, {"ids": ids, "reason": reason, "over": over})
    await links.forget_memories(session, ids)
    await forget_memories(session, ids)
    return retired


_UNCOMPRESSED = {"compressor": "given", "model": None, "prompt": None}
"""Fields of an observation that a caller has compressed."""


async def merge_observations(session: Session, rows: Mapping[UUID, MemoryRow], *, known_first: bool) -> set[UUID]:
    """Writes the observation fields of memories, in the order of their ids, so that no two writers deadlock.

    An empty field does not replace a known one. The compressor of a known observation stays. Returns the changed
    memories.
    """
    given = [
        {"memory_id": memory_id, **_UNCOMPRESSED, **structs.asdict(row.memory.observation)}
        for memory_id, row in sorted(rows.items())
        if row.memory.observation is not None
    ]
    if not given:
        return set()
    statement = _MERGE_KNOWN if known_first else _MERGE_GIVEN
    return set(await session.column(statement, {"rows": as_json(given)}))


async def add_refusals(session: Session, counts: Mapping[str, int]) -> None:
    """Adds to the counts of refused memories by reason, in a fixed order, so that no two writers deadlock."""
    reasons = sorted(counts)
    await session.execute(_ADD_REFUSALS, {"reasons": reasons, "counts": [counts[reason] for reason in reasons]})


async def refusals_of_all(session: Session) -> dict[str, int]:
    """Returns how many memories and observations all workspaces refused, by reason."""
    return {row.reason: row.total for row in await session.rows(_REFUSALS_OF_ALL)}


def as_json(value: object) -> str:
    """Returns a value as JSON, for a parameter of a statement."""
    return msgspec.json.encode(value).decode()


async def forget_user(session: Session, user: str) -> dict[UUID, str]:
    """Destroys all memories of a user, with their words, vectors, links and ratings; returns their kinds by id."""
    return {row.memory_id: row.kind for row in await session.rows(_FORGET_USER, {"user": user})}
