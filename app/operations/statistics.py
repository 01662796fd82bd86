"""The verb that counts what is stored."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import text

from app.db.engine import Database

COUNTS = text("""
SELECT w.name, w.language,
    (SELECT coalesce(json_object_agg(kind, n), '{}') FROM (
        SELECT kind, count(*) AS n FROM memories m
        WHERE m.workspace_id = w.workspace_id AND m.valid_until IS NULL GROUP BY kind
    ) AS by_kind) AS kinds,
    (SELECT count(*) FROM memories m WHERE m.workspace_id = w.workspace_id AND m.valid_until IS NOT NULL) AS retired,
    (SELECT count(*) FROM sources s WHERE s.workspace_id = w.workspace_id AND s.retired_at IS NULL) AS sources,
    (SELECT count(*) FROM recalls r WHERE r.workspace_id = w.workspace_id) AS recalls,
    (SELECT count(*) FROM pending_embeddings p WHERE p.workspace_id = w.workspace_id) AS waiting,
    (SELECT count(*) FROM runs n WHERE n.workspace_id = w.workspace_id) AS runs,
    (SELECT count(*) FROM memories m WHERE m.workspace_id = w.workspace_id AND m.retired_as = 'quarantined')
        AS quarantined,
    (SELECT coalesce(json_object_agg(reason, count), '{}') FROM refusals f WHERE f.workspace_id = w.workspace_id)
        AS refused
FROM workspaces w ORDER BY w.name
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceStatistics:
    """What one workspace holds."""

    name: str
    language: str
    live: int
    kinds: Mapping[str, int]
    """Live memories by kind."""
    retired: int
    sources: int
    """Live sources."""
    recalls: int
    waiting: int
    """Memories that wait for a vector."""
    runs: int
    quarantined: int
    """Memories that the injection scan keeps out of every answer."""
    refused: Mapping[str, int]
    """Memories that were not stored, by reason."""


async def store_statistics(database: Database) -> list[WorkspaceStatistics]:
    """Every workspace by name, counted now."""
    async with database.statements() as connection:
        rows = (await connection.execute(COUNTS)).all()
    return [
        WorkspaceStatistics(
            name=row.name,
            language=row.language,
            live=sum(row.kinds.values()),
            kinds=row.kinds,
            retired=row.retired,
            sources=row.sources,
            recalls=row.recalls,
            waiting=row.waiting,
            runs=row.runs,
            quarantined=row.quarantined,
            refused=row.refused,
        )
        for row in rows
    ]
