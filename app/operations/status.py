"""The verbs that show the state of one workspace, of the service, and of the store across all workspaces."""

from collections.abc import Mapping

from app.errors import DatabaseUnavailable, StorageFull
from app.foundation.db.database import Database
from app.foundation.db.migrations import head, state
from app.foundation.db.session import DECIDE, EXTRACT, Row, Session
from app.foundation.models.protocols import EmbeddingProvider
from app.foundation.values import frozen
from app.operations.week import Week, week_of
from app.recall.retrieval.candidates import vector_degradation
from app.recall.retrieval.recall import HYBRID, LEXICAL
from app.storage.index import indexing
from app.storage.index.models import Move, StoredModel, active_model, move_state
from app.storage.index.service import pending_counts
from app.storage.memories import store as memories
from app.storage.recalls.store import IMPORTED
from app.storage.tenants import store as workspaces
from app.storage.tenants.workspace import UNMADE, Workspace

_LATEST = 1_000
"""Recalls from which the percentiles are taken."""
_NOT_LOADED = "the embedding model is not loaded yet; answers are by words alone"

_DATABASE = """
SELECT pg_database_size(current_database()) AS bytes, current_setting('server_version') AS version,
    (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS vector_version
"""
_BYTES_ON_NODES = """
SELECT coalesce(sum(result::bigint), 0)::bigint
FROM run_command_on_workers('SELECT pg_database_size(current_database())') WHERE success
"""
"""The nodes of a cluster beside the coordinator, as far as they answer."""
_WAIT_SHORTLY = "SET LOCAL citus.node_connection_timeout = '2s'"
"""Lets the rest of a transaction wait no longer for a node that is silent; by default it is 30 s for each."""

# Ids of recalls grow with time. Nobody measured how long imported recalls took.
_LATENCIES = """
SELECT purpose, count(*) AS recalls,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY took_ms) AS p50,
    percentile_cont(0.95) WITHIN GROUP (ORDER BY took_ms) AS p95,
    percentile_cont(0.99) WITHIN GROUP (ORDER BY took_ms) AS p99,
    avg((mode = 'hybrid')::int)::float8 AS hybrid
FROM (
    SELECT purpose, took_ms, mode FROM recalls WHERE workspace_id = %(workspace_id)s AND purpose <> %(imported)s
    ORDER BY recall_id DESC LIMIT %(limit)s
) AS latest GROUP BY purpose ORDER BY purpose
"""

_QUEUE = """
SELECT count(*) AS due, count(*) FILTER (WHERE task_name = ANY(%(cues)s::text[])) AS cues,
    (SELECT count(*) FROM procrastinate_jobs WHERE status = 'failed') AS failed,
    (SELECT count(*) FROM procrastinate_workers
    WHERE last_heartbeat > now() - make_interval(secs => %(alive)s)) AS workers
FROM procrastinate_jobs WHERE status = 'todo' AND coalesce(scheduled_at <= now(), true)
"""
_ALIVE_SECONDS = 13.0
"""Time since its last heartbeat after which a worker counts as ended; it gives one every three seconds."""

COUNTED_EXACTLY = 100_000
"""Live memories that the state of a workspace counts, in 10 ms; the number of more is that of the last statistics."""
_COMMON_COUNTS = f"""
    (SELECT count(*) FROM pending_embeddings WHERE workspace_id = %(workspace_id)s AND NOT partial) AS waiting,
    ({indexing.PENDING_LINKS.format(condition=indexing.OWN)}) AS pending_links,
    (SELECT count(*) FROM sources WHERE workspace_id = %(workspace_id)s AND retired_at IS NULL) AS sources,
    (SELECT count(*) FROM runs WHERE workspace_id = %(workspace_id)s) AS runs,
    (SELECT count(*) FROM recalls WHERE workspace_id = %(workspace_id)s) AS recalls,
    (SELECT coalesce(json_object_agg(reason, count), '{{}}') FROM refusals WHERE workspace_id = %(workspace_id)s)
        AS refused
"""  # noqa: S608 - constants
COUNTS_OF_ONE = f"""
SELECT
    (SELECT CASE WHEN count(*) <= {COUNTED_EXACTLY} THEN count(*) ELSE greatest(count(*), (
        SELECT document_count FROM workspaces WHERE workspace_id = %(workspace_id)s
    )) END FROM (
        SELECT FROM memories WHERE workspace_id = %(workspace_id)s AND valid_until IS NULL
        LIMIT {COUNTED_EXACTLY} + 1
    ) AS few) AS live,
    {_COMMON_COUNTS},
    (SELECT coalesce(json_object_agg(retired_as, n), '{{}}') FROM (
        SELECT retired_as, count(*) AS n FROM memories
        WHERE workspace_id = %(workspace_id)s AND retired_as IS NOT NULL GROUP BY retired_as
    ) AS by_reason) AS retired
"""  # noqa: S608 - constants


@frozen
class Latency:
    """The times of the latest recalls of one purpose, in milliseconds."""

    purpose: str
    recalls: int
    p50: float
    p95: float
    p99: float
    hybrid: float
    """The share of recalls that both arms answered."""


@frozen
class Status:
    """The state of one workspace and its service."""

    workspace: str
    language: str | None
    """Text search language of the workspace; None if nothing was ever written to it."""
    mode: str
    """The mode in which a query would be answered now: hybrid or lexical."""
    reasons: tuple[str, ...]
    """The reasons why an arm is missing, and other faults."""
    model: str
    database_bytes: int
    postgres: str
    pgvector: str
    revision: str | None
    live: int
    """Live memories; above 100,000, their number at the last statistics."""
    waiting: int
    """Live memories without a vector."""
    pending_links: int
    """Live memories that are pending for links; 100,000 stand for as many or more."""
    sources: int
    runs: int
    recalls: int
    retired: Mapping[str, int]
    """Memories that are excluded from all answers, by reason."""
    refused: Mapping[str, int]
    """Memories that were not stored, by reason."""
    latencies: tuple[Latency, ...]


@frozen
class JobQueue:
    """The jobs of all workspaces that a worker could begin now."""

    due: int
    cues: int
    """Jobs that make cues: one for each session or decision record."""
    failed: int
    """Dead jobs: they raised an error, and nothing runs them again by itself."""
    workers: int
    """Workers that are running."""


async def _queue(session: Session) -> JobQueue:
    found = await session.one(_QUEUE, {"cues": [EXTRACT, DECIDE], "alive": _ALIVE_SECONDS})
    return JobQueue(**found._asdict())


@frozen
class Tenant:
    """A workspace by its name."""

    name: str
    language: str


async def _bytes_on_nodes(session: Session) -> int:
    await session.execute(_WAIT_SHORTLY)
    found: int = await session.value(_BYTES_ON_NODES)
    return found


def _vector_silence(
    provider: EmbeddingProvider, stored: StoredModel | None, counts: Row, *, model_loaded: bool
) -> str | None:
    """Returns the reason why vectors answer no query now; None if they do."""
    if provider.enabled and not model_loaded:
        return _NOT_LOADED
    wrong = vector_degradation(provider, stored, pending=counts.waiting, live=counts.live)
    return wrong.reason if wrong is not None and wrong.silent else None


@frozen
class Readiness:
    """The parts that the service needs, and their state."""

    database: bool
    migrations: str | None
    """The revision of the database's schema."""
    head: str
    """The revision that this version needs."""
    model: bool
    """True if the embedding model is loaded, or switched off."""
    waiting: int
    """Memories that are pending for a vector. The service is ready even so, because they are found by their words."""
    pending_links: int
    """Memories that are pending for links; they are found without them. 100,000 stand for as many or more."""
    reasons: tuple[str, ...]
    """The reasons why it is not ready."""
    ready: bool
    """True if there is no reason against it."""


@frozen
class Gauges:
    """The figures of the store that change by themselves, across all workspaces."""

    pending: int
    """Memories that are pending for a vector."""
    pending_links: int
    """Memories that are pending for links; 100,000 stand for as many or more."""
    refused: Mapping[str, int]
    """Memories and observations that were not stored, by reason."""
    jobs: JobQueue
    move: Move | None
    """The change of model that is in progress or was interrupted."""


_COUNTS = f"""
SELECT (SELECT coalesce(json_object_agg(kind, n), '{{}}') FROM (
        SELECT kind, count(*) AS n FROM memories m
        WHERE m.workspace_id = %(workspace_id)s AND m.valid_until IS NULL GROUP BY kind
    ) AS by_kind) AS kinds,
    (SELECT count(*) FROM memories m WHERE m.workspace_id = %(workspace_id)s AND m.valid_until IS NOT NULL) AS retired,
    (SELECT count(*) FROM memories m WHERE m.workspace_id = %(workspace_id)s AND m.retired_as = 'quarantined')
        AS quarantined,
    {_COMMON_COUNTS}
"""  # noqa: S608 - constants


@frozen
class WorkspaceStatistics:
    """The contents of one workspace."""

    name: str
    language: str
    live: int
    kinds: Mapping[str, int]
    """Number of live memories by kind."""
    retired: int
    sources: int
    """Number of live sources."""
    recalls: int
    waiting: int
    """Memories that are pending for a vector."""
    pending_links: int
    """Memories that are pending for links; 100,000 stand for as many or more."""
    runs: int
    quarantined: int
    """Memories that the injection scan excludes from all answers."""
    refused: Mapping[str, int]
    """Memories that were not stored, by reason."""


@frozen
class Overview:
    """Shows how the store is."""

    database: Database

    async def week(self, workspace: Workspace) -> Week:
        """Counts what memory did for a workspace in the last seven days."""
        async with self.database.session(workspace, reading=True) as session:
            return await week_of(session)

    async def jobs(self) -> JobQueue:
        """Returns the jobs that are due, and the workers that are there for them."""
        async with self.database.across() as session:
            return await _queue(session)

    async def workspaces(self) -> list[Tenant]:
        """Returns the workspaces that something was written to, by name."""
        async with self.database.across() as session:
            return [Tenant(name=row.name, language=row.language) for row in await workspaces.all_of_them(session)]

    async def status(self, workspace: Workspace, provider: EmbeddingProvider, *, model_loaded: bool) -> Status:
        """Returns the state of a workspace.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        revision, mend = await state(self.database)
        async with self.database.session(workspace, reading=True) as session:
            size = await session.one(_DATABASE)
            counts = await session.one(COUNTS_OF_ONE, {"most": indexing.MOST_COUNTED})
            latencies = await session.rows_as(Latency, _LATENCIES, {"limit": _LATEST, "imported": IMPORTED})
            stored = await active_model(session)
            on_nodes = await _bytes_on_nodes(session) if session.distributed else 0
        silent = _vector_silence(provider, stored, counts, model_loaded=model_loaded)
        reasons = [silent] if silent else []
        return Status(
            workspace=workspace.name,
            language=None if workspace.workspace_id == UNMADE else workspace.language,
            mode=LEXICAL if reasons else HYBRID,
            reasons=(*reasons, *([mend] if mend else [])),
            model=provider.model_id,
            database_bytes=size.bytes + on_nodes,
            postgres=size.version,
            pgvector=size.vector_version or "",
            revision=revision,
            **counts._asdict(),
            latencies=tuple(latencies),
        )

    async def readiness(self, *, model_loaded: bool) -> Readiness:
        """Returns the state of the parts that the service needs; it never raises."""
        silent = "" if model_loaded else _NOT_LOADED
        revision, answers, waiting, pending_links, full = None, True, 0, 0, ""
        try:
            revision, mend = await state(self.database)
            if not mend:
                waiting, pending_links = await pending_counts(self.database.across)
            full = await self.database.lack_of_room()
        except (DatabaseUnavailable, StorageFull) as error:
            # A database whose disk takes no changes answers, though it cannot make room for what it is to read.
            answers, mend = isinstance(error, StorageFull), str(error)
        reasons = tuple(filter(None, (silent, mend, full)))
        return Readiness(
            database=answers,
            migrations=revision,
            head=head(),
            model=model_loaded,
            waiting=waiting,
            pending_links=pending_links,
            reasons=reasons,
            ready=not reasons,
        )

    async def gauges(self) -> Gauges:
        """Returns the figures that the metrics show.

        Raises:
            Unavailable: the database does not answer, or cannot read now.
        """
        async with self.database.across() as session:
            return Gauges(
                pending=await indexing.pending_count(session),
                pending_links=await indexing.pending_links_count(session),
                refused=await memories.refusals_of_all(session),
                jobs=await _queue(session),
                move=(await move_state(session)).move,
            )

    async def statistics(self) -> list[WorkspaceStatistics]:
        """Returns the counts of every workspace, by name."""
        async with self.database.across() as session:
            found = await workspaces.all_of_them(session)
        return [await self._statistics_of(workspace) for workspace in found]

    async def _statistics_of(self, workspace: Row) -> WorkspaceStatistics:
        async with self.database.session(workspace.workspace_id, reading=True) as session:
            row = await session.one(_COUNTS, {"most": indexing.MOST_COUNTED})
        return WorkspaceStatistics(
            name=workspace.name,
            language=workspace.language,
            live=sum(row.kinds.values()),
            **row._asdict(),
        )
