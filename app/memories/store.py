"""The SQL of memories: writing, finding, retiring."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.memories.identity import content_hash, in_utc, new_id
from app.memories.memory import Memory, NewMemory

COLUMNS = """
    m.memory_id, m.kind, m.title, m.body, m.language, m.source_id, s.kind AS source_kind, s.uri AS source_uri,
    s.title AS source_title, m.ordinal, m.occurred_at, m.tags, m.metadata, m.run_id, m.final_score, m.quality,
    m.tokens, m.created_at, m.valid_until
"""
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
        }


def changeable_of(known: Row[Any]) -> tuple[Any, ...]:
    """`MemoryRow.changeable` of a stored row."""
    score = None if known.final_score is None else round(known.final_score, 4)
    return tuple(known.tags), known.metadata, known.run_id, score, known.occurred_at


def row_of(memory: NewMemory, *, source_id: UUID | None, language: str, tokens: int) -> MemoryRow:
    """A new memory's row, under an id of its own."""
    return MemoryRow(
        memory_id=new_id(),
        memory=memory,
        source_id=source_id,
        language=language,
        tokens=tokens,
        content_hash=content_hash(memory, language),
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
    tokens, occurred_at, content_hash
)
SELECT :workspace_id, memory_id, kind, source_id, ordinal, title, body, language,
    ARRAY(SELECT jsonb_array_elements_text(tags)), metadata, run_id, final_score, tokens, occurred_at,
    decode(content_hash, 'hex')
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS given(
    memory_id uuid, kind text, source_id uuid, ordinal integer, title text, body text, language text, tags jsonb,
    metadata jsonb, run_id text, final_score real, tokens integer, occurred_at timestamptz, content_hash text
)
ON CONFLICT DO NOTHING
RETURNING memory_id
""")

UPDATE = text("""
UPDATE memories m
SET tags = ARRAY(SELECT jsonb_array_elements_text(given.tags)), metadata = given.metadata, run_id = given.run_id,
    final_score = given.final_score, occurred_at = given.occurred_at, ordinal = given.ordinal,
    valid_until = CASE WHEN :revive THEN NULL ELSE m.valid_until END
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS given(
    memory_id uuid, ordinal integer, tags jsonb, metadata jsonb, run_id text, final_score real,
    occurred_at timestamptz
)
WHERE m.workspace_id = :workspace_id AND m.memory_id = given.memory_id
""")

RETIRE = """
UPDATE memories SET valid_until = now()
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


async def retire(connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID]) -> int:
    """Take memories out of retrieval; they keep their row, ratings and provenance. How many were live."""
    if not ids:
        return 0
    given = {"workspace_id": workspace_id, "ids": list(ids)}
    retired = (await connection.execute(text(RETIRE), given)).rowcount
    for table in ("lexical", "embeddings", "pending_embeddings"):
        await connection.execute(
            text(
                f"DELETE FROM {table} WHERE workspace_id = :workspace_id"  # noqa: S608 - names from the line above
                " AND memory_id = ANY(CAST(:ids AS uuid[]))"
            ),
            given,
        )
    return retired


async def get(connection: AsyncConnection, workspace_id: int, memory_id: UUID) -> Memory | None:
    """One memory, live or retired."""
    statement = text(f"SELECT {COLUMNS} FROM {JOINED} WHERE m.workspace_id = :workspace_id AND m.memory_id = :id")  # noqa: S608 - constants
    row = (await connection.execute(statement, {"workspace_id": workspace_id, "id": memory_id})).one_or_none()
    return None if row is None else memory_of(row)


async def newest(
    connection: AsyncConnection,
    workspace_id: int,
    *,
    conditions: Sequence[str],
    values: dict[str, Any],
    limit: int,
    before: tuple[datetime, UUID] | None,
) -> list[Memory]:
    """Live memories, newest first, after the place that `before` names."""
    clauses = ["m.workspace_id = :workspace_id", "m.valid_until IS NULL", *conditions]
    given = {**values, "workspace_id": workspace_id, "limit": limit}
    if before is not None:
        clauses.append("(m.created_at, m.memory_id) < (:created_at, :memory_id)")
        given |= {"created_at": before[0], "memory_id": before[1]}
    statement = text(
        f"SELECT {COLUMNS} FROM {JOINED} WHERE {' AND '.join(clauses)}"  # noqa: S608 - conditions are our own constants
        " ORDER BY m.created_at DESC, m.memory_id DESC LIMIT :limit"
    )
    return [memory_of(row) for row in await connection.execute(statement, given)]


def memory_of(row: Row[Any]) -> Memory:
    """The value of a row that has COLUMNS."""
    return Memory(**{name: getattr(row, name) for name in Memory.__slots__ if name != "tags"}, tags=tuple(row.tags))
