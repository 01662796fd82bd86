"""`GET /health`, `/ready`, `/metrics`, `/api/status`, `/api/ingestions`: the state of service and workspace."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal
from uuid import UUID

from litestar import Controller, Response, get, put
from litestar.datastructures import State
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import JSONBody, QueryParameter
from msgspec import Meta, Struct

from app.errors import Forbidden, Unavailable
from app.insight.map.worker import Stage
from app.intake.reports.ingest import list_ingestions
from app.intake.reports.store import LARGEST_PAGE, FileOutcome, LoggedIngestion
from app.interfaces.http.context import METRICS_TYPE, Call, ThisCall
from app.interfaces.http.schemas import PROBLEMS, convert, view_of
from app.operations.status import Readiness, Status, Tenant, gauges, list_workspaces, readiness, workspace_status
from app.operations.week import Week, week_of
from app.settings import VERSION
from app.storage.tenants.service import HIGHEST, set_quota
from app.storage.tenants.store import Use

Most = Annotated[int, Meta(ge=0, le=HIGHEST)] | None


class HealthView(Struct, frozen=True):
    """The process is alive."""

    status: Literal["ok"] = "ok"


@view_of(Readiness)
class ReadyView(Struct):
    """The readiness of the service, with the reasons against it."""

    ready: bool
    storing_examples: bool
    """True while the first start still stores the examples: the service answers, but may not find all of them."""


@view_of(Status)
class StatusView(Struct):
    """The state of one workspace."""

    version: str
    evaluator: str
    """The name before each of the evaluator's issues among the facts: `[name] issue`."""
    trash_days: int
    """Days after which a deleted memory is destroyed."""
    week: Week
    """The deeds of memory in the last seven days, and what waits for a person."""
    maps: Stage
    """The work of the process that computes maps: none, or it compiles, starts or computes."""


class QuotaView(Struct, frozen=True):
    """The use of a workspace's quota."""

    quota: Use | None
    """Null if it has none."""


class QuotaInput(Struct, forbid_unknown_fields=True):
    """The quota of a workspace: null for the setting's, 0 for no limit."""

    memories: Most
    """Live memories."""


@view_of(FileOutcome, without=["tokens"])
class FileOutcomeView(Struct):
    """The result for one file."""


@view_of(LoggedIngestion, ingestion_id="id", outcomes="files")
class IngestionView(Struct):
    """A past ingestion."""

    outcomes: Sequence[FileOutcomeView]


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
        """Tell if database, migrations and model are ready, and count the memories pending for vectors or links."""
        call = Call(state)
        found = await readiness(call.database, model_loaded=call.context.model_loaded)
        call.metrics.waiting.set(found.waiting)
        call.metrics.pending_links.set(found.pending_links)
        view = convert(found, ReadyView, storing_examples=bool(call.lack))
        return Response(view, status_code=200 if found.ready else 503)

    @get("/metrics", media_type="text/plain", responses=PROBLEMS)
    async def metrics(self, state: State) -> Response[bytes]:
        """The service's counters, as Prometheus reads them."""
        call = Call(state)
        # /ready reports a database that cannot be read; this answer has the figures that were counted before.
        with suppress(Unavailable):
            call.metrics.note_gauges(await gauges(call.database))
        return Response(call.metrics.exposition(), media_type=METRICS_TYPE)


class StatusController(Controller):
    """Shows how a workspace is served and what was ingested."""

    path = "/api"
    tags = ("status",)

    @get("/status", responses=PROBLEMS)
    async def status(self, call: ThisCall) -> StatusView:
        """Show how a workspace is served: mode, pending work, sizes, and how long recalls take."""
        target, loaded = await call.tenant(), call.context.model_loaded
        found = await workspace_status(call.database, call.services.provider, workspace=target, model_loaded=loaded)
        given: dict[str, Any] = {"evaluator": call.settings.evaluator, "trash_days": call.settings.trash_days}
        reasons = [*found.reasons, *filter(None, [call.lack])]
        given["week"] = await week_of(call.database, target)
        return convert(found, StatusView, version=VERSION, maps=call.services.layouts.stage, reasons=reasons, **given)

    @put("/quota", responses=PROBLEMS)
    async def set_quota(self, call: ThisCall, data: JSONBody[QuotaInput]) -> QuotaView:
        """Set the quota of the workspace; returns what it has of it. What it has beyond it stays."""
        if call.key.workspaces is not None:
            raise Forbidden("only a key of all workspaces sets quotas: they protect the service that all share")
        use = await set_quota(call.database, workspace=await call.tenant(), memories=data.memories)
        return QuotaView(quota=use)

    @get("/workspaces", responses=PROBLEMS)
    async def workspaces(self, call: ThisCall) -> Sequence[Tenant]:
        """The workspaces that something was written to, by name. A key of some workspaces sees those alone."""
        return [tenant for tenant in await list_workspaces(call.database) if call.key.serves(tenant.name)]

    @get("/ingestions", responses=PROBLEMS)
    async def ingestions(
        self,
        call: ThisCall,
        limit: Annotated[int, QueryParameter(ge=1, le=LARGEST_PAGE)] = 20,
        before: Annotated[UUID | None, QueryParameter(description="the last ingestion of the page before")] = None,
        failed: Annotated[bool, QueryParameter(description="only those with files that failed")] = False,
    ) -> Sequence[IngestionView]:
        """Past ingestions, newest first, each with the outcome of its files."""
        target = await call.tenant()
        found = await list_ingestions(call.database, workspace=target, before=before, failed=failed, limit=limit)
        return convert(found, list[IngestionView])
