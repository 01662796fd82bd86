"""The verb that says how one workspace is served: what holds, what waits, how long answers take."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.engine import Database
from app.db.migrations import current, lacking
from app.index.vectors import StoredModel, active_model
from app.models.protocols import EmbeddingProvider
from app.retrieval.degradation import vector_degradation
from app.retrieval.recall import HYBRID, LEXICAL
from app.workspaces import store as workspaces
from app.workspaces.workspace import checked_name

LATEST = 1_000
"""Recalls that the percentiles are of."""

DATABASE = text("""
SELECT pg_database_size(current_database()) AS bytes, current_setting('server_version') AS version,
    (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS vector_version
""")

# Ids of recalls grow with time.
LATENCIES = text("""
SELECT purpose, count(*) AS recalls,
    percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY took_ms) AS percentiles,
    avg((mode = 'hybrid')::int)::float8 AS hybrid
FROM (
    SELECT purpose, took_ms, mode FROM recalls WHERE workspace_id = :workspace_id
    ORDER BY recall_id DESC LIMIT :limit
) AS latest GROUP BY purpose ORDER BY purpose
""")

COUNTS = text("""
SELECT
    (SELECT count(*) FROM memories WHERE workspace_id = :workspace_id AND valid_until IS NULL) AS live,
    (SELECT count(*) FROM pending_embeddings WHERE workspace_id = :workspace_id) AS waiting,
    (SELECT count(*) FROM sources WHERE workspace_id = :workspace_id AND retired_at IS NULL) AS sources,
    (SELECT count(*) FROM runs WHERE workspace_id = :workspace_id) AS runs,
    (SELECT count(*) FROM recalls WHERE workspace_id = :workspace_id) AS recalls,
    (SELECT coalesce(json_object_agg(retired_as, n), '{}') FROM (
        SELECT retired_as, count(*) AS n FROM memories
        WHERE workspace_id = :workspace_id AND retired_as IS NOT NULL GROUP BY retired_as
    ) AS by_reason) AS retired,
    (SELECT coalesce(json_object_agg(reason, count), '{}') FROM refusals WHERE workspace_id = :workspace_id) AS refused
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How long the latest recalls of one purpose took, in milliseconds."""

    purpose: str
    recalls: int
    p50: float
    p95: float
    p99: float
    hybrid: float
    """The share that both arms answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How one workspace is served."""

    workspace: str
    language: str | None
    """None where nothing was ever written to the workspace."""
    mode: str
    """How a query would be answered now: hybrid or lexical."""
    reasons: tuple[str, ...]
    """Why not by both arms, or what else is amiss."""
    model: str
    database_bytes: int
    postgres: str
    pgvector: str
    revision: str | None
    live: int
    waiting: int
    """Live memories without a vector."""
    sources: int
    runs: int
    recalls: int
    retired: Mapping[str, int]
    """Memories that are out of every answer, by reason."""
    refused: Mapping[str, int]
    """Memories that were not stored, by reason."""
    latencies: tuple[Latency, ...]


async def workspace_status(
    database: Database, provider: EmbeddingProvider, *, workspace: str, model_loaded: bool
) -> Status:
    """Ask the database.

    Raises:
        DatabaseUnavailable: it does not answer.
    """
    revision = await current(database)
    async with database.statements() as connection:
        target = await workspaces.find(connection, checked_name(workspace))
        workspace_id = 0 if target is None else target.workspace_id
        size = (await connection.execute(DATABASE)).one()
        counts = (await connection.execute(COUNTS, {"workspace_id": workspace_id})).one()
        latencies = await _latencies(connection, workspace_id)
        stored = await active_model(connection)
    silent = _vector_silence(provider, stored, counts, model_loaded=model_loaded)
    reasons = [silent] if silent else []
    mend = lacking(revision)
    return Status(
        workspace=workspace,
        language=None if target is None else target.language,
        mode=LEXICAL if reasons else HYBRID,
        reasons=(*reasons, *([mend] if mend else [])),
        model=provider.model_id,
        database_bytes=size.bytes,
        postgres=size.version,
        pgvector=size.vector_version or "",
        revision=revision,
        **_counted(counts),
        latencies=latencies,
    )


def _counted(counts: Row[Any]) -> dict[str, Any]:
    names = ("live", "waiting", "sources", "runs", "recalls", "retired", "refused")
    return {name: getattr(counts, name) for name in names}


async def _latencies(connection: AsyncConnection, workspace_id: int) -> tuple[Latency, ...]:
    rows = await connection.execute(LATENCIES, {"workspace_id": workspace_id, "limit": LATEST})
    return tuple(
        Latency(
            purpose=row.purpose,
            recalls=row.recalls,
            **dict(zip(("p50", "p95", "p99"), row.percentiles, strict=True)),
            hybrid=row.hybrid,
        )
        for row in rows
    )


def _vector_silence(
    provider: EmbeddingProvider, stored: StoredModel | None, counts: Row[Any], *, model_loaded: bool
) -> str | None:
    """Why no query is answered by meaning now; None where it is."""
    if provider.enabled and not model_loaded:
        return "the embedding model is not loaded yet; answers are by words alone"
    wrong = vector_degradation(provider, stored, waiting=counts.waiting, live=counts.live)
    return wrong.reason if wrong is not None and wrong.silent else None
