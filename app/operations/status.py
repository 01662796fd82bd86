"""The verb that says how one workspace is served: what it holds, what is pending, how long answers take."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.db.database import Database
from app.db.migrations import current, lacking
from app.db.session import Row, Session
from app.index.models import StoredModel, active_model
from app.models.protocols import EmbeddingProvider
from app.retrieval.degradation import vector_degradation
from app.retrieval.recall import HYBRID, LEXICAL
from app.workspaces.workspace import UNMADE, Workspace

LATEST = 1_000
"""Recalls from which the percentiles are taken."""

DATABASE = """
SELECT pg_database_size(current_database()) AS bytes, current_setting('server_version') AS version,
    (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS vector_version
"""

# Ids of recalls grow with time.
LATENCIES = """
SELECT purpose, count(*) AS recalls,
    percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY took_ms) AS percentiles,
    avg((mode = 'hybrid')::int)::float8 AS hybrid
FROM (
    SELECT purpose, took_ms, mode FROM recalls WHERE workspace_id = %(workspace_id)s
    ORDER BY recall_id DESC LIMIT %(limit)s
) AS latest GROUP BY purpose ORDER BY purpose
"""

COUNTS = """
SELECT
    (SELECT count(*) FROM memories WHERE workspace_id = %(workspace_id)s AND valid_until IS NULL) AS live,
    (SELECT count(*) FROM pending_embeddings WHERE workspace_id = %(workspace_id)s) AS waiting,
    (SELECT count(*) FROM sources WHERE workspace_id = %(workspace_id)s AND retired_at IS NULL) AS sources,
    (SELECT count(*) FROM runs WHERE workspace_id = %(workspace_id)s) AS runs,
    (SELECT count(*) FROM recalls WHERE workspace_id = %(workspace_id)s) AS recalls,
    (SELECT coalesce(json_object_agg(retired_as, n), '{}') FROM (
        SELECT retired_as, count(*) AS n FROM memories
        WHERE workspace_id = %(workspace_id)s AND retired_as IS NOT NULL GROUP BY retired_as
    ) AS by_reason) AS retired,
    (SELECT coalesce(json_object_agg(reason, count), '{}') FROM refusals WHERE workspace_id = %(workspace_id)s)
        AS refused
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """The times of the latest recalls of one purpose, in milliseconds."""

    purpose: str
    recalls: int
    p50: float
    p95: float
    p99: float
    hybrid: float
    """The share that both arms answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The state of one workspace and its service."""

    workspace: str
    language: str | None
    """None where nothing was ever written to the workspace."""
    mode: str
    """The mode in which a query would be answered now: hybrid or lexical."""
    reasons: tuple[str, ...]
    """The reasons why not by both arms, and other faults."""
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
    database: Database, provider: EmbeddingProvider, *, workspace: Workspace, model_loaded: bool
) -> Status:
    """Returns the state of a workspace.

    Raises:
        DatabaseUnavailable: it does not answer.
    """
    revision = await current(database)
    async with database.session(workspace, transaction=False) as session:
        size = await session.one(DATABASE)
        counts = await session.one(COUNTS)
        latencies = await _latencies(session)
        stored = await active_model(session)
    silent = _vector_silence(provider, stored, counts, model_loaded=model_loaded)
    reasons = [silent] if silent else []
    mend = lacking(revision)
    return Status(
        workspace=workspace.name,
        language=None if workspace.workspace_id == UNMADE else workspace.language,
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


def _counted(counts: Row) -> dict[str, Any]:
    names = ("live", "waiting", "sources", "runs", "recalls", "retired", "refused")
    return {name: getattr(counts, name) for name in names}


async def _latencies(session: Session) -> tuple[Latency, ...]:
    rows = await session.rows(LATENCIES, {"limit": LATEST})
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
    provider: EmbeddingProvider, stored: StoredModel | None, counts: Row, *, model_loaded: bool
) -> str | None:
    """Returns why no query is answered by vectors now; None where it is."""
    if provider.enabled and not model_loaded:
        return "the embedding model is not loaded yet; answers are by words alone"
    wrong = vector_degradation(provider, stored, pending=counts.waiting, live=counts.live)
    return wrong.reason if wrong is not None and wrong.silent else None
