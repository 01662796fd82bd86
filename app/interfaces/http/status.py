"""`GET /health`, `/ready`, `/metrics`, `/api/status`, `/api/ingestions`: the state of service and workspace."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Literal
from uuid import UUID

from litestar import Controller, Response
from litestar.datastructures import State
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import QueryParameter
from msgspec import Struct

from app.errors import Unavailable
from app.foundation.values import frozen
from app.intake.reports.store import LoggedIngestion
from app.interfaces.http.context import METRICS_TYPE, Call, Limit, ThisCall
from app.interfaces.http.schemas import PROBLEMS, convert, get
from app.operations.status import Overview, Readiness, Status, Tenant
from app.operations.week import Week
from app.settings import VERSION


class HealthView(Struct, frozen=True):
    """The process is alive."""

    status: Literal["ok"] = "ok"


@frozen
class ReadyView(Readiness):
    """The readiness of the service, with the reasons against it."""

    storing_examples: bool
    """True while the first start still stores the examples: the service answers, but may not find all of them."""


@frozen
class StatusView(Status):
    """The state of one workspace."""

    version: str
    evaluator: str
    """The name before each of the evaluator's issues among the facts: `[name] issue`."""
    trash_days: int
    """Days after which a deleted memory is destroyed."""
    week: Week
    """The deeds of memory in the last seven days, and what waits for a person."""


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
        found = await Overview(database=call.database).readiness(model_loaded=call.context.model_loaded)
        call.metrics.waiting.set(found.waiting)
        call.metrics.pending_links.set(found.pending_links)
        view = convert(found, ReadyView, storing_examples=bool(call.lack))
        return Response(view, status_code=200 if found.ready else 503)

    @get("/metrics", media_type="text/plain")
    async def metrics(self, state: State) -> Response[bytes]:
        """The service's counters, as Prometheus reads them."""
        call = Call(state)
        # /ready reports a database that cannot be read; this answer has the figures that were counted before.
        with suppress(Unavailable):
            call.metrics.note_gauges(await Overview(database=call.database).gauges())
        return Response(call.metrics.exposition(), media_type=METRICS_TYPE)


class StatusController(Controller):
    """Shows how a workspace is served and what was ingested."""

    path = "/api"
    tags = ("status",)

    @get("/status")
    async def status(self, call: ThisCall) -> StatusView:
        """Show how a workspace is served: mode, pending work, sizes, and how long recalls take."""
        target, loaded = await call.tenant(), call.context.model_loaded
        found = await Overview(database=call.database).status(target, call.services.provider, model_loaded=loaded)
        return convert(
            found,
            StatusView,
            version=VERSION,
            reasons=[*found.reasons, *filter(None, [call.lack])],
            evaluator=call.settings.evaluator,
            trash_days=call.settings.trash_days,
            week=await Overview(database=call.database).week(target),
        )

    @get("/workspaces")
    async def workspaces(self, call: ThisCall) -> Sequence[Tenant]:
        """The workspaces that something was written to, by name. A key of some workspaces sees those alone."""
        return [
            tenant for tenant in await Overview(database=call.database).workspaces() if call.key.serves(tenant.name)
        ]

    @get("/ingestions")
    async def ingestions(
        self,
        call: ThisCall,
        limit: Limit = 20,
        before: Annotated[UUID | None, QueryParameter(description="the last ingestion of the page before")] = None,
        failed: Annotated[bool, QueryParameter(description="only those with files that failed")] = False,
    ) -> Sequence[LoggedIngestion]:
        """Past ingestions, newest first, each with the outcome of its files."""
        return await call.services.ingestions.page(await call.tenant(), before=before, failed=failed, limit=limit)
