"""The SQL of sources: where memories come from."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.memories.memory import Source, SourceReference, new_id

LIVE = text("""
SELECT source_id, kind, uri FROM sources
WHERE workspace_id = :workspace_id AND retired_at IS NULL AND uri = ANY(CAST(:uris AS text[]))
""")

INSERT = text("""
INSERT INTO sources (workspace_id, source_id, kind, uri, title)
SELECT :workspace_id, source_id, kind, uri, title
FROM unnest(CAST(:ids AS uuid[]), CAST(:kinds AS text[]), CAST(:uris AS text[]), CAST(:titles AS text[]))
    AS given(source_id, kind, uri, title)
ON CONFLICT DO NOTHING
""")

COLUMNS = """
    s.source_id, s.kind, s.uri, s.title, s.created_at, s.updated_at, s.retired_at, (
        SELECT count(*) FROM memories m WHERE m.workspace_id = s.workspace_id AND m.source_id = s.source_id
        AND m.valid_until IS NULL
    ) AS memories
"""


async def ensure(
    connection: AsyncConnection, workspace_id: int, references: Iterable[SourceReference]
) -> dict[tuple[str, str], UUID]:
    """The live source of each reference by (kind, uri), made now where there is none."""
    wanted = {(reference.kind, reference.uri): reference for reference in references}
    found = await _live(connection, workspace_id, wanted)
    missing = [wanted[key] for key in sorted(wanted.keys() - found.keys())]
    if not missing:
        return found
    given = {
        "workspace_id": workspace_id,
        "ids": [new_id() for _ in missing],
        "kinds": [reference.kind for reference in missing],
        "uris": [reference.uri for reference in missing],
        "titles": [reference.title for reference in missing],
    }
    await connection.execute(INSERT, given)
    return await _live(connection, workspace_id, wanted)


async def _live(
    connection: AsyncConnection, workspace_id: int, wanted: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], UUID]:
    keys = set(wanted)
    if not keys:
        return {}
    result = await connection.execute(LIVE, {"workspace_id": workspace_id, "uris": sorted({uri for _, uri in keys})})
    return {(row.kind, row.uri): row.source_id for row in result if (row.kind, row.uri) in keys}


async def page(
    connection: AsyncConnection,
    workspace_id: int,
    *,
    kind: str | None,
    limit: int,
    before: tuple[datetime, UUID] | None,
) -> Sequence[Source]:
    """Sources, retired ones included, newest first, after the place that `before` names."""
    clauses = ["s.workspace_id = :workspace_id"]
    given: dict[str, Any] = {"workspace_id": workspace_id, "limit": limit}
    if kind is not None:
        clauses.append("s.kind = :kind")
        given["kind"] = kind
    if before is not None:
        clauses.append("(s.created_at, s.source_id) < (:created_at, :source_id)")
        given |= {"created_at": before[0], "source_id": before[1]}
    statement = text(
        f"SELECT {COLUMNS} FROM sources s WHERE {' AND '.join(clauses)}"  # noqa: S608 - the clauses are constants
        " ORDER BY s.created_at DESC, s.source_id DESC LIMIT :limit"
    )
    return [_source_of(row) for row in await connection.execute(statement, given)]


def _source_of(row: Row[Any]) -> Source:
    return Source(**{name: getattr(row, name) for name in Source.__slots__})
