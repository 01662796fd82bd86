"""The SQL of memories: writing, finding, retiring."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.memories.identity import content_hash, in_utc, new_id
from app.memories.memory import NewMemory

COLUMNS = """
    m.memory_id, m.kind, m.title, m.body, m.language, m.source_id, s.kind AS source_kind, s.uri AS source_uri,
    s.title AS source_title, m.ordinal, m.occurred_at, m.tags, m.metadata, m.run_id, m.final_score, m.quality,
    m.tokens, m.uses, m.created_at, m.valid_until, m.retired_as, m.findings
"""
GONE, DELETED, SUPERSEDED, QUARANTINED = "gone", "deleted", "superseded", "quarantined"
"""Why a memory is retired: its text left its source, a person deleted it, a better one says the same, or the injection
scan found something in it."""
JOINED = "memories m LEFT JOIN sources s USING (workspace_id, source_id)"


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
    def identity(self) -> tuple[bytes, str, UUID | None, int | None]:
        """Two live memories of a workspace never share it."""
        return self.content_hash, self.memory.kind, self.source_id, self.memory.ordinal

    @property
    def changeable(self) -> tuple[Any, ...]:
        """What a writer may give anew for known text."""
        given = self.memory
        score = None if given.final_score is None else round(given.final_score, 4)
        moment = None if given.occurred_at is None else in_utc(given.occurred_at)
        return tuple(given.tags), dict(given.metadata), given.run_id, score, moment

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


def changeable_of(known: Row[Any]) -> tuple[Any, ...]:
    """`MemoryRow.changeable` of a stored row."""
    score = None if known.final_score is None else round(known.final_score, 4)
    return tuple(known.tags), known.metadata, known.run_id, score, known.occurred_at


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

RETIRE = """
UPDATE memories SET valid_until = now(), retired_as = :reason
WHERE workspace_id = :workspace_id AND memory_id = ANY(CAST(:ids AS uuid[])) AND valid_until IS NULL
"""


async def find_known(
    connection: AsyncConnection, workspace_id: int, rows: Sequence[MemoryRow]
) -> dict[tuple[bytes, str, UUID | None, int | None], Row[Any]]:
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


INSERT_OBSERVATIONS = text("""
INSERT INTO observations (
    workspace_id, memory_id, task, task_type, narrative, facts, output_path, verdict, compressor, model, prompt
)
SELECT :workspace_id, memory_id, task, task_type, narrative, ARRAY(SELECT jsonb_array_elements_text(facts)),
    output_path, verdict, compressor, model, prompt
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS given(
    memory_id uuid, task text, task_type text, narrative text, facts jsonb, output_path text, verdict text,
    compressor text, model text, prompt text
)
ON CONFLICT DO NOTHING
""")


async def insert_observations(connection: AsyncConnection, workspace_id: int, rows: Sequence[MemoryRow]) -> None:
    """Write what observations have beyond a memory's text."""
    given = [
        {"memory_id": row.memory_id, **asdict(row.memory.observation)}
        for row in rows
        if row.memory.observation is not None
    ]
    if given:
        values = {"workspace_id": workspace_id, "rows": msgspec.json.encode(given).decode()}
        await connection.execute(INSERT_OBSERVATIONS, values)


async def update(
    connection: AsyncConnection, workspace_id: int, rows: Sequence[MemoryRow], *, revive: bool = False
) -> None:
    """Give known memories (by `memory_id`) new tags, metadata, run, score, date and ordinal.

    `revive` makes them live again as well; they still have to be indexed.
    """
    if not rows:
        return
    await connection.execute(UPDATE, {"workspace_id": workspace_id, "rows": _as_json(rows), "revive": revive})


def _as_json(rows: Sequence[MemoryRow]) -> str:
    return msgspec.json.encode([row.json for row in rows]).decode()


async def retire(connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID], *, reason: str = GONE) -> int:
    """Take memories out of retrieval; they keep their row, ratings and provenance. How many were live."""
    if not ids:
        return 0
    given = {"workspace_id": workspace_id, "ids": list(ids)}
    retired = (await connection.execute(text(RETIRE), {**given, "reason": reason})).rowcount
    for table in ("lexical", "embeddings", "pending_embeddings"):
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

# Of several with one identity only the first comes back: the live ones' unique index holds one.
RESTORE = text("""
WITH wanted AS (
    SELECT DISTINCT ON (content_hash, kind, source_id, ordinal) memory_id
    FROM memories
    WHERE workspace_id = :workspace_id AND memory_id = ANY(CAST(:ids AS uuid[]))
        AND retired_as IN ('deleted', 'quarantined', 'superseded')
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
DELETE FROM memories WHERE retired_as = 'deleted' AND valid_until < now() - make_interval(days => :days)
""")


async def lock_deletable(connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID]) -> list[UUID]:
    """Those of these memories that are live, quarantined or superseded; locked in the order of their ids."""
    values = {"workspace_id": workspace_id, "ids": list(ids)}
    return list((await connection.execute(LOCK_DELETABLE, values)).scalars())


async def mark_retired(connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID], *, reason: str) -> None:
    """These memories, whether live or not, are retired for this reason from now on."""
    await retire(connection, workspace_id, ids, reason=reason)
    if ids:
        await connection.execute(MARK, {"workspace_id": workspace_id, "ids": list(ids), "reason": reason})


async def restore(connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID]) -> list[UUID]:
    """Make memories live again; which ones. They still have to be indexed."""
    return list((await connection.execute(RESTORE, {"workspace_id": workspace_id, "ids": list(ids)})).scalars())


async def empty_trash(connection: AsyncConnection, days: int) -> int:
    """Destroy what was deleted longer ago than this. How many."""
    return (await connection.execute(EMPTY_TRASH, {"days": days})).rowcount
