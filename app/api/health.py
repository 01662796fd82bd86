"""`GET /health`, `GET /ready`, `GET /metrics`."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

from litestar import Controller, Response, get
from litestar.datastructures import State
from litestar.openapi.datastructures import ResponseSpec
from msgspec import Struct

from app.api.context import context_of
from app.api.metrics import CONTENT_TYPE
from app.api.problems import PROBLEMS
from app.errors import DatabaseUnavailable
from app.index.backfill import backfill_state
from app.index.reembed import move_state
from app.memories.refusals import refused
from app.operations.readiness import readiness


class HealthView(Struct, frozen=True):
    """The process is alive."""

    status: Literal["ok"] = "ok"


class ReadyView(Struct, frozen=True):
    """Whether requests can be served as they should be."""

    ready: bool
    database: bool
    migrations: str | None
    head: str
    model: bool
    waiting: int
    reasons: Sequence[str]


class HealthController(Controller):
    """What orchestrators ask."""

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
        found = await readiness(context.opened.database, model_loaded=context.model_loaded)
        context.metrics.waiting.set(found.waiting)
        view = ReadyView(
            ready=found.ready,
            database=found.database,
            migrations=found.migrations,
            head=found.head,
            model=found.model,
            waiting=found.waiting,
            reasons=found.reasons,
        )
        return Response(view, status_code=200 if found.ready else 503)

    @get("/metrics", media_type="text/plain", responses=PROBLEMS)
    async def metrics(self, state: State) -> Response[bytes]:
        """The service's counters, as Prometheus reads them."""
        context = context_of(state)
        # A database that is away is told by /ready; what was counted so far is told here all the same.
        with suppress(DatabaseUnavailable):
            context.metrics.waiting.set(await backfill_state(context.opened.database))
            context.metrics.note_refusals(await refused(context.opened.database))
            context.metrics.note_move((await move_state(context.opened.database)).move)
        return Response(context.metrics.exposition(), media_type=CONTENT_TYPE)
