"""`GET /api/status`, `GET /api/ingestions`: what the panel shows of the service's health."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated
from uuid import UUID

from litestar import Controller, get
from litestar.datastructures import State
from litestar.params import QueryParameter
from msgspec import Struct

from app.api.context import WorkspaceHeader, context_of
from app.api.problems import PROBLEMS
from app.intake.reports.log import LARGEST_PAGE, LoggedIngestion, list_ingestions
from app.intake.reports.outcome import FileOutcome
from app.operations.status import Latency, Status, workspace_status
from app.settings import VERSION


class LatencyView(Struct, frozen=True):
    """How long the latest recalls of one purpose took, in milliseconds."""

    purpose: str
    recalls: int
    p50: float
    p95: float
    p99: float
    hybrid: float
    """The share that both arms answered."""

    @classmethod
    def of(cls, latency: Latency) -> "LatencyView":
        """The view of a latency."""
        return cls(**{name: getattr(latency, name) for name in cls.__struct_fields__})


class StatusView(Struct, frozen=True):
    """How one workspace is served."""

    version: str
    workspace: str
    language: str | None
    mode: str
    """How a query would be answered now."""
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
    """Of the latest 1,000 recalls, by purpose."""

    @classmethod
    def of(cls, status: Status, *, evaluator: str) -> "StatusView":
        """The view of a status."""
        names = set(cls.__struct_fields__) - {"version", "evaluator", "retired", "refused", "latencies"}
        return cls(
            **{name: getattr(status, name) for name in names},
            version=VERSION,
            evaluator=evaluator,
            retired=dict(status.retired),
            refused=dict(status.refused),
            latencies=[LatencyView.of(latency) for latency in status.latencies],
        )


class FileOutcomeView(Struct, frozen=True):
    """What became of one file."""

    path: str
    status: str
    chunks: int
    stored: int
    left_out: int
    quarantined: int
    reason: str

    @classmethod
    def of(cls, outcome: FileOutcome) -> "FileOutcomeView":
        """The view of an outcome."""
        return cls(**{name: getattr(outcome, name) for name in cls.__struct_fields__})


class IngestionView(Struct, frozen=True):
    """A past ingestion."""

    id: UUID
    finished_at: datetime
    seconds: float
    counts: dict[str, int]
    """Files by status."""
    files: Sequence[FileOutcomeView]
    """Those that were not unchanged, the failed ones first."""
    degraded: str

    @classmethod
    def of(cls, ingestion: LoggedIngestion) -> "IngestionView":
        """The view of a past ingestion."""
        return cls(
            id=ingestion.ingestion_id,
            finished_at=ingestion.finished_at,
            seconds=ingestion.seconds,
            counts=dict(ingestion.counts),
            files=[FileOutcomeView.of(outcome) for outcome in ingestion.outcomes],
            degraded=ingestion.degraded,
        )


class StatusController(Controller):
    """How the service does."""

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
            workspace=context.workspace(workspace),
            model_loaded=context.model_loaded,
        )
        return StatusView.of(found, evaluator=services.settings.evaluator)

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
        found = await list_ingestions(
            context.opened.database,
            workspace=context.workspace(workspace),
            before=before,
            failed=failed,
            limit=limit,
        )
        return [IngestionView.of(ingestion) for ingestion in found]
