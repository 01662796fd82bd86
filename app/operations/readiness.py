"""The verbs that say whether the service is ready, and count what all workspaces hold."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.db.database import Database
from app.db.migrations import current, head, lacking
from app.errors import DatabaseUnavailable
from app.index.backfill import pending_count
from app.index.reembed import Move, move_state
from app.memories.browse import refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """The parts that the service needs, and their state."""

    database: bool
    migrations: str | None
    """The revision that the database is at."""
    head: str
    """The revision that this version needs."""
    model: bool
    """True where the embedding model is loaded, or switched off."""
    waiting: int
    """Memories that wait for a vector; they are found by their words, so it does not make the service unready."""
    reasons: tuple[str, ...]
    """The reasons why it is not ready."""

    @property
    def ready(self) -> bool:
        """True where requests can be served as they should be."""
        return not self.reasons


async def readiness(database: Database, *, model_loaded: bool) -> Readiness:
    """Returns the state of what the service needs; it never raises."""
    wanted = head()
    reasons = [] if model_loaded else ["the embedding model is not loaded yet; answers are by words alone"]
    try:
        revision = await current(database)
        waiting = await pending_count(database.across) if revision == wanted else 0
    except DatabaseUnavailable as error:
        return Readiness(
            database=False, migrations=None, head=wanted, model=model_loaded, waiting=0, reasons=(*reasons, str(error))
        )
    if mend := lacking(revision):
        reasons.append(mend)
    return Readiness(
        database=True,
        migrations=revision,
        head=wanted,
        model=model_loaded,
        waiting=waiting,
        reasons=tuple(reasons),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """The figures of the store that change by themselves, across all workspaces."""

    pending: int
    """Memories that are pending for a vector."""
    refused: Mapping[str, int]
    """Memories and observations that were not stored, by reason."""
    move: Move | None
    """The change of model that is in progress or was broken off."""


async def gauges(database: Database) -> Gauges:
    """Returns the figures that the metrics show.

    Raises:
        DatabaseUnavailable: the database does not answer.
    """
    across = database.across
    return Gauges(
        pending=await pending_count(across), refused=await refused(across), move=(await move_state(across)).move
    )


COUNTS = """
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
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceStatistics:
    """The contents of one workspace."""

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
    """Returns the counts of every workspace, by name."""
    async with database.across() as session:
        rows = await session.rows(COUNTS)
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
