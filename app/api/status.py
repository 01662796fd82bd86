"""`GET /health`, `/ready`, `/metrics`, `/api/status`, `/api/ingestions`: the state of service and workspace."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from litestar import Controller, Response, get
from litestar.datastructures import State
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import QueryParameter
from msgspec import Struct, field

from app.api.context import METRICS_TYPE, WorkspaceHeader, context_of
from app.api.problems import PROBLEMS
from app.api.schemas import converted
from app.errors import DatabaseUnavailable
from app.intake.reports.outcome import LARGEST_PAGE, list_ingestions
from app.operations.status import gauges, readiness, workspace_status
from app.settings import VERSION


class HealthView(Struct, frozen=True):
    """The process is alive."""

    status: Literal["ok"] = "ok"


class ReadyView(Struct, frozen=True):
    """The readiness of the service, with the reasons against it."""

    ready: bool
    database: bool
    migrations: str | None
    head: str
    model: bool
    waiting: int
    reasons: Sequence[str]


class LatencyView(Struct, frozen=True):
    """The time that the latest recalls of one purpose took, in milliseconds."""

    purpose: str
    recalls: int
    p50: float
    p95: float
    p99: float
    hybrid: float
    """The share that both arms answered."""


class StatusView(Struct, frozen=True):
    """The state of one workspace."""

    version: str
    workspace: str
    language: str | None
    mode: str
    """The mode in which a query would be answered now."""
    reasons: Sequence[str]
    model: str
    evaluator: str
    """The name before each of the evaluator's issues among the facts: `[name] issue`."""
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
    retired: dict[str, int]
    refused: dict[str, int]
    latencies: Sequence[LatencyView]
    """The latest 1,000 recalls, by purpose."""


class FileOutcomeView(Struct, frozen=True):
    """The result for one file."""

    path: str
    status: str
    chunks: int
    stored: int
    left_out: int
    quarantined: int
    reason: str


class IngestionView(Struct, frozen=True):
    """A past ingestion."""

    ingestion_id: UUID = field(name="id")
    finished_at: datetime
    seconds: float
    counts: dict[str, int]
    """Files by status."""
    outcomes: Sequence[FileOutcomeView] = field(name="files")
    """The files that were not unchanged, the failed ones first."""
    degraded: str


class HealthController(Controller):
    """Answers orchestrators."""

    path = "/"
    tags = ("health",)

    @get("/health")
    async def health(self) -> HealthView:
        """The process is alive. Asks for no key."""
        return HealthView()

    @get("/ready", responses={**PROBLEMS, 503: ResponseSpec(ReadyView, description="not ready, with the reasons")})
    async def ready(self, state: State) -> Response[ReadyView]:
        """Whether database, migrations and model are there, and how many memories wait for a vector."""
        context = context_of(state)
        found = await readiness(context.database, model_loaded=context.model_loaded)
        context.metrics.waiting.set(found.waiting)
        return Response(converted(found, ReadyView), status_code=200 if found.ready else 503)

    @get("/metrics", media_type="text/plain", responses=PROBLEMS)
    async def metrics(self, state: State) -> Response[bytes]:
        """The service's counters, as Prometheus reads them."""
        context = context_of(state)
        # A database that is away is told by /ready; what was counted so far is told here all the same.
        with suppress(DatabaseUnavailable):
            context.metrics.note_gauges(await gauges(context.database))
        return Response(context.metrics.exposition(), media_type=METRICS_TYPE)


class StatusController(Controller):
    """Shows how a workspace is served and what was ingested."""

    path = "/api"
    tags = ("status",)

    @get("/status", responses=PROBLEMS)
    async def status(self, state: State, workspace: WorkspaceHeader = None) -> StatusView:
        """How a workspace is served: mode, what waits, sizes, how long recalls take."""
        context = context_of(state)
        services = context.opened
        found = await workspace_status(
            services.database,
            services.provider,
            workspace=await context.workspace(workspace),
            model_loaded=context.model_loaded,
        )
        return converted(found, StatusView, version=VERSION, evaluator=services.settings.evaluator)

    @get("/ingestions", responses=PROBLEMS)
    async def ingestions(
        self,
        state: State,
        workspace: WorkspaceHeader = None,
        limit: Annotated[int, QueryParameter(ge=1, le=LARGEST_PAGE)] = 20,
        before: Annotated[UUID | None, QueryParameter(description="the last ingestion of the page before")] = None,
        failed: Annotated[bool, QueryParameter(description="only those with files that failed")] = False,  # noqa: FBT002 - a query parameter
    ) -> Sequence[IngestionView]:
        """Past ingestions, newest first, each with the outcome of its files."""
        context = context_of(state)
        target = await context.workspace(workspace)
        found = await list_ingestions(context.database, workspace=target, before=before, failed=failed, limit=limit)
        return converted(found, list[IngestionView])
