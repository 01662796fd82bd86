"""The SQL of memories: writing, finding, retiring."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from uuid import UUID

import msgspec
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.memories.memory import NewMemory, content_hash, in_utc, new_id

COLUMNS = """
    m.memory_id, m.kind, m.title, m.body, m.language, m.source_id, s.kind AS source_kind, s.uri AS source_uri,
    s.title AS source_title, m.ordinal, m.occurred_at, m.tags, m.metadata, m.run_id, m.final_score, m.quality,
    m.tokens, m.uses, m.created_at, m.valid_until, m.retired_as, m.findings
"""
GONE, DELETED, SUPERSEDED, QUARANTINED = "gone", "deleted", "superseded", "quarantined"
"""Why a memory is retired: its text left its source, a person deleted it, a better one says the same, or the injection
scan found something in it."""
JOINED = "memories m LEFT JOIN sources s USING (workspace_id, source_id)"


T = TypeVar("T")
Identity = tuple[bytes, str, UUID | None, int | None]
"""Content hash, kind, source and ordinal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRow:
    """A memory ready to be written: everything is computed, nothing is looked up any more."""

    memory_id: UUID
    memory: NewMemory
    source_id: UUID | None
    language: str
    tokens: int
    content_hash: bytes
    findings: tuple[Mapping[str, Any], ...] = ()
    """What the injection scan found."""
    quarantined: bool = False

    @property
    def identity(self) -> Identity:
        """Two live memories of a workspace never share it."""
        return self.content_hash, self.memory.kind, self.source_id, self.memory.ordinal

    @property
    def json(self) -> dict[str, Any]:
        """The row as `jsonb_to_recordset` reads it."""
        given = self.memory
        return {
            "memory_id": self.memory_id,
            "kind": given.kind,
            "source_id": self.source_id,
            "ordinal": given.ordinal,
            "title": given.title,
            "body": given.body,
            "language": self.language,
            "tags": given.tags,
            "metadata": dict(given.metadata),
            "run_id": given.run_id,
            "final_score": given.final_score,
            "tokens": self.tokens,
            "occurred_at": None if given.occurred_at is None else in_utc(given.occurred_at),
            "content_hash": self.content_hash.hex(),
            "findings": self.findings or None,
            "retired_as": QUARANTINED if self.quarantined else None,
        }


def joined(row: MemoryRow, known: Row[Any], *, known_first: bool) -> MemoryRow | None:
    """What a stored memory becomes when it is given again, under its own id; None where that changes nothing.

    Nothing is lost: tags and metadata come together, the run that first said it stays, and what is not given now is
    kept. A score and a date are replaced by new ones, unless what is known `goes_first`.
    """
    given = row.memory
    known_first = goes_first(known, row, known_first=known_first)
    memory = replace(
        given,
        tags=tuple(dict.fromkeys((*known.tags, *given.tags))),
        metadata={**given.metadata, **known.metadata} if known_first else {**known.metadata, **given.metadata},
        run_id=known.run_id or given.run_id,
        final_score=_first(given.final_score, known.final_score, known_first),
        occurred_at=_first(given.occurred_at, known.occurred_at, known_first),
    )
    if _changeable(memory) == _changeable(known):
        return None
    return replace(row, memory_id=known.memory_id, memory=memory)


def goes_first(known: Row[Any], row: MemoryRow, *, known_first: bool) -> bool:
    """Whether what is known goes before what is given: where the caller says so, and where another run that was not
    judged better says the same. Of several runs the best judged one speaks."""
    if known_first or not known.run_id or row.memory.run_id in {None, known.run_id}:
        return known_first
    return row.memory.final_score is None or row.memory.final_score <= (known.final_score or 0.0)


def _first(given: T | None, known: T | None, known_first: bool) -> T | None:  # noqa: FBT001 - of the caller's
    one, other = (known, given) if known_first else (given, known)
    return other if one is None else one


def _changeable(memory: "NewMemory | Row[Any]") -> tuple[Any, ...]:
    score = None if memory.final_score is None else round(memory.final_score, 4)
    moment = None if memory.occurred_at is None else in_utc(memory.occurred_at)
    return tuple(memory.tags), dict(memory.metadata), memory.run_id, score, moment


def row_of(
    memory: NewMemory,
    *,
    source_id: UUID | None,
    language: str,
    tokens: int,
    findings: tuple[Mapping[str, Any], ...] = (),
    quarantined: bool = False,
) -> MemoryRow:
    """A new memory's row, under an id of its own."""
    return MemoryRow(
        memory_id=new_id(),
        memory=memory,
        source_id=source_id,
        language=language,
        tokens=tokens,
        content_hash=content_hash(memory, language),
        findings=findings,
        quarantined=quarantined,
    )


FIND_KNOWN = text("""
SELECT m.memory_id, m.content_hash, m.kind, m.source_id, m.ordinal, m.tags, m.metadata, m.run_id, m.final_score,
    m.occurred_at
FROM memories m
WHERE m.workspace_id = :workspace_id AND m.valid_until IS NULL
  AND m.content_hash = ANY(CAST(:hashes AS bytea[]))
""")

INSERT = text("""
INSERT INTO memories (
    workspace_id, memory_id, kind, source_id, ordinal, title, body, language, tags, metadata, run_id, final_score,
    tokens, occurred_at, content_hash, findings, retired_as, valid_until
)
SELECT :workspace_id, memory_id, kind, source_id, ordinal, title, body, language,
    ARRAY(SELECT jsonb_array_elements_text(tags)), metadata, run_id, final_score, tokens, occurred_at,
    decode(content_hash, 'hex'), findings, retired_as, CASE WHEN retired_as IS NOT NULL THEN now() END
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS given(
    memory_id uuid, kind text, source_id uuid, ordinal integer, title text, body text, language text, tags jsonb,
    metadata jsonb, run_id text, final_score real, tokens integer, occurred_at timestamptz, content_hash text,
    findings jsonb, retired_as text
)
ON CONFLICT DO NOTHING
RETURNING memory_id
""")

UPDATE = text("""
UPDATE memories m
SET tags = ARRAY(SELECT jsonb_array_elements_text(given.tags)), metadata = given.metadata, run_id = given.run_id,
    final_score = given.final_score, occurred_at = given.occurred_at, ordinal = given.ordinal,
    valid_until = CASE WHEN :revive THEN NULL ELSE m.valid_until END,
    retired_as = CASE WHEN :revive THEN NULL ELSE m.retired_as END
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS given(
    memory_id uuid, ordinal integer, tags jsonb, metadata jsonb, run_id text, final_score real,
    occurred_at timestamptz
)
WHERE m.workspace_id = :workspace_id AND m.memory_id = given.memory_id
""")

LOCK = text("""
SELECT 1 FROM memories WHERE workspace_id = :workspace_id AND memory_id = ANY(CAST(:ids AS uuid[]))
ORDER BY memory_id FOR NO KEY UPDATE
""")

RETIRE = """
UPDATE memories SET valid_until = now(), retired_as = :reason
WHERE workspace_id = :workspace_id AND memory_id = ANY(CAST(:ids AS uuid[])) AND valid_until IS NULL
"""


async def find_known(
    connection: AsyncConnection, workspace_id: int, rows: Sequence[MemoryRow]
) -> dict[Identity, Row[Any]]:
    """Live memories that have the identity of one of these rows."""
    result = await connection.execute(
        FIND_KNOWN, {"workspace_id": workspace_id, "hashes": list({row.content_hash for row in rows})}
    )
    return {(bytes(row.content_hash), row.kind, row.source_id, row.ordinal): row for row in result}


async def insert(connection: AsyncConnection, workspace_id: int, rows: Sequence[MemoryRow]) -> set[UUID]:
    """Write new memories; the ids of those that nobody else wrote meanwhile.

    In the order of their identity: two writers of the same memories wait for each other, but never in a circle.
    """
    if not rows:
        return set()
    ordered = sorted(rows, key=lambda row: [str(part) for part in row.identity])
    result = await connection.execute(INSERT, {"workspace_id": workspace_id, "rows": _as_json(ordered)})
    return set(result.scalars())


async def lock(connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID]) -> None:
    """Hold these memories against other writers, in the order of their ids; readers and new references go on."""
    if ids:
        await connection.execute(LOCK, {"workspace_id": workspace_id, "ids": list(ids)})


async def update(
    connection: AsyncConnection, workspace_id: int, rows: Sequence[MemoryRow], *, revive: bool = False
) -> None:
    """Give known memories (by `memory_id`) new tags, metadata, run, score, date and ordinal.

    `revive` makes them live again as well; they still have to be indexed. Rows are locked in the order of their ids.
    """
    if not rows:
        return
    ordered = sorted(rows, key=lambda row: row.memory_id)
    await lock(connection, workspace_id, [row.memory_id for row in ordered])
    await connection.execute(UPDATE, {"workspace_id": workspace_id, "rows": _as_json(ordered), "revive": revive})


def _as_json(rows: Sequence[MemoryRow]) -> str:
    return msgspec.json.encode([row.json for row in rows]).decode()


# They are found again when it comes back; until then they would count as names and stand in the way of live ones.
FORGET_FOUND_LINKS = """
DELETE FROM links WHERE workspace_id = :workspace_id AND relation IN ('mentions', 'same_entity', 'similar')
    AND (from_id = ANY(CAST(:ids AS uuid[])) OR to_id = ANY(CAST(:ids AS uuid[])))
"""


async def retire(connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID], *, reason: str = GONE) -> int:
    """Take memories out of retrieval; they keep their row, ratings and provenance. How many were live."""
    if not ids:
        return 0
    given = {"workspace_id": workspace_id, "ids": sorted(ids)}
    await lock(connection, workspace_id, ids)
    retired = (await connection.execute(text(RETIRE), {**given, "reason": reason})).rowcount
    await connection.execute(text(FORGET_FOUND_LINKS), given)
    for table in ("lexical", "embeddings", "pending_embeddings", "titles", "pending_links"):
        await connection.execute(
            text(
                f"DELETE FROM {table} WHERE workspace_id = :workspace_id"  # noqa: S608 - names from the line above
                " AND memory_id = ANY(CAST(:ids AS uuid[]))"
            ),
            given,
        )
    return retired


LOCK_DELETABLE = text("""
SELECT memory_id FROM memories
WHERE workspace_id = :workspace_id AND memory_id = ANY(CAST(:ids AS uuid[]))
    AND (valid_until IS NULL OR retired_as IN ('quarantined', 'superseded'))
ORDER BY memory_id FOR UPDATE
""")

MARK = text("""
UPDATE memories SET retired_as = :reason, valid_until = now()
WHERE workspace_id = :workspace_id AND memory_id = ANY(CAST(:ids AS uuid[]))
""")

LOCK_RETIRED = text("""
SELECT memory_id, retired_as = 'deleted' AND NOT released
    AND coalesce(findings @> '[{"severity": "block"}]', false) AS was_quarantined
FROM memories
WHERE workspace_id = :workspace_id AND memory_id = ANY(CAST(:ids AS uuid[])) AND body <> ''
    AND retired_as IN ('deleted', 'quarantined', 'superseded')
ORDER BY memory_id FOR UPDATE
""")

# Of several with one identity only the first comes back: the live ones' unique index holds one.
RESTORE = text("""
WITH wanted AS (
    SELECT DISTINCT ON (content_hash, kind, source_id, ordinal) memory_id
    FROM memories
    WHERE workspace_id = :workspace_id AND memory_id = ANY(CAST(:ids AS uuid[]))
    ORDER BY content_hash, kind, source_id, ordinal, memory_id
)
UPDATE memories m SET valid_until = NULL, retired_as = NULL, released = m.released OR m.retired_as = 'quarantined'
WHERE m.workspace_id = :workspace_id AND m.memory_id IN (SELECT memory_id FROM wanted)
    AND NOT EXISTS (
        SELECT 1 FROM memories o
        WHERE o.workspace_id = m.workspace_id AND o.valid_until IS NULL AND o.content_hash = m.content_hash
            AND o.kind = m.kind AND o.source_id IS NOT DISTINCT FROM m.source_id
            AND o.ordinal IS NOT DISTINCT FROM m.ordinal
    )
RETURNING m.memory_id
""")

EMPTY_TRASH = text("""
DELETE FROM memories m WHERE retired_as = 'deleted' AND valid_until < now() - make_interval(days => :days)
    AND NOT (kind = 'chunk' AND source_id IS NOT NULL)
""")

# A chunk's text may stand in its file for years: the row, empty, keeps it from coming back with the next version.
BLANK = text("""
WITH blanked AS (
    UPDATE memories SET title = '', body = '', tags = '{}', metadata = '{}', findings = NULL, run_id = NULL
    WHERE retired_as = 'deleted' AND valid_until < now() - make_interval(days => :days) AND kind = 'chunk'
        AND source_id IS NOT NULL AND body <> ''
    RETURNING workspace_id, memory_id
)
DELETE FROM feedback f USING blanked b WHERE f.workspace_id = b.workspace_id AND f.memory_id = b.memory_id
""")
BLANKED = text("""
SELECT count(*) FROM memories WHERE retired_as = 'deleted' AND valid_until < now() - make_interval(days => :days)
    AND kind = 'chunk' AND source_id IS NOT NULL AND body <> ''
""")

# Memories that were destroyed but for their place take no tags.
TAG = text("""
WITH locked AS (
    SELECT memory_id FROM memories
    WHERE workspace_id = :workspace_id AND memory_id = ANY(CAST(:ids AS uuid[])) AND body <> ''
        AND NOT tags @> ARRAY[CAST(:tag AS text)] AND cardinality(tags) < :most
    ORDER BY memory_id FOR NO KEY UPDATE
)
UPDATE memories m SET tags = m.tags || CAST(:tag AS text) FROM locked
WHERE m.workspace_id = :workspace_id AND m.memory_id = locked.memory_id RETURNING m.memory_id
""")

UNTAG = text("""
WITH locked AS (
    SELECT memory_id FROM memories
    WHERE workspace_id = :workspace_id AND memory_id = ANY(CAST(:ids AS uuid[])) AND tags @> ARRAY[CAST(:tag AS text)]
    ORDER BY memory_id FOR NO KEY UPDATE
)
UPDATE memories m SET tags = array_remove(m.tags, CAST(:tag AS text)) FROM locked
WHERE m.workspace_id = :workspace_id AND m.memory_id = locked.memory_id RETURNING m.memory_id
""")


async def tag(
    connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID], tag: str, *, most: int
) -> list[UUID]:
    """Those of these memories that had the tag not yet, and have room below `most` tags, and have it now."""
    values = {"workspace_id": workspace_id, "ids": list(ids), "tag": tag, "most": most}
    return list((await connection.execute(TAG, values)).scalars())


async def untag(connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID], tag: str) -> list[UUID]:
    """Those of these memories that had the tag, and have it no more."""
    return list(
        (await connection.execute(UNTAG, {"workspace_id": workspace_id, "ids": list(ids), "tag": tag})).scalars()
    )


async def lock_deletable(connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID]) -> list[UUID]:
    """Those of these memories that are live, quarantined or superseded; locked in the order of their ids."""
    values = {"workspace_id": workspace_id, "ids": list(ids)}
    return list((await connection.execute(LOCK_DELETABLE, values)).scalars())


async def mark_retired(connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID], *, reason: str) -> None:
    """These memories, whether live or not, are retired for this reason from now on."""
    await retire(connection, workspace_id, ids, reason=reason)
    if ids:
        await connection.execute(MARK, {"workspace_id": workspace_id, "ids": list(ids), "reason": reason})


async def restore(connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID]) -> tuple[list[UUID], list[UUID]]:
    """Make memories live again, which still have to be indexed; and those that are back in quarantine instead.

    What was in quarantine when it was deleted comes back there; from there it is released by a restore of its own.

    Raises:
        IntegrityError: another transaction has just made the same text live.
    """
    values = {"workspace_id": workspace_id, "ids": list(ids)}
    retired = {row.memory_id: row.was_quarantined for row in await connection.execute(LOCK_RETIRED, values)}
    caught = [memory_id for memory_id, was_quarantined in retired.items() if was_quarantined]
    if caught:
        await connection.execute(MARK, {"workspace_id": workspace_id, "ids": caught, "reason": QUARANTINED})
    wanted = [memory_id for memory_id in retired if memory_id not in caught]
    live = await connection.execute(RESTORE, {"workspace_id": workspace_id, "ids": wanted})
    return list(live.scalars()), caught


async def empty_trash(connection: AsyncConnection, days: int) -> int:
    """Destroy what was deleted longer ago than this, with its ratings. How many."""
    chunks = (await connection.execute(BLANKED, {"days": days})).scalar_one()
    await connection.execute(BLANK, {"days": days})
    return int(chunks) + (await connection.execute(EMPTY_TRASH, {"days": days})).rowcount
