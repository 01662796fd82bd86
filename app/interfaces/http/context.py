"""The services, the metrics and the tenant of a request, as all handlers share them."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, NamedTuple, cast
from urllib.parse import quote, unquote_to_bytes

import structlog
from litestar import Request
from litestar.datastructures import State
from litestar.di import NamedDependency, Provide
from litestar.params import HeaderParameter, QueryParameter
from litestar.types import HTTPScope, Scope
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from app.errors import Forbidden, InvalidInput
from app.foundation.db.database import Database
from app.operations import examples
from app.operations.status import Gauges
from app.recall.retrieval.recall import Recall
from app.settings import Settings
from app.storage.index.models import Move
from app.storage.memories.memory import Remembered
from app.storage.memories.service import LARGEST_PAGE
from app.storage.tenants.keys import EVERYTHING, Key
from app.storage.tenants.service import KnownKeys
from app.storage.tenants.workspace import USER_LIMIT, Workspace
from app.tracing import times
from app.wiring import Services

SLOW_RECALL_MS = 1_000.0
"""Milliseconds from which on a recall is logged with its steps and plans."""
METRICS_TYPE = "text/plain; version=0.0.4"
"""Litestar adds the character set of a text."""
KEY = "priors.key"
"""The place in a request's scope where the frame leaves its key."""
_LATENCIES = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
"""Limits of the histogram's buckets, in seconds; a recall takes 10 to 20 ms."""

logger = structlog.get_logger()

_WorkspaceHeader = Annotated[
    str | None,
    HeaderParameter(
        name="X-Workspace",
        description="the tenant; made at the first write. Without it, the configured default workspace.",
        max_length=64,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
    ),
]

_UserParameter = Annotated[
    str | None,
    QueryParameter(description="only what belongs to this user; empty: what all users share", max_length=USER_LIMIT),
]

Limit = Annotated[int, QueryParameter(ge=1, le=LARGEST_PAGE)]
Cursor = Annotated[str | None, QueryParameter(max_length=1_600, description="the `next` of the page before")]
IdempotencyKey = Annotated[
    str | None,
    HeaderParameter(name="Idempotency-Key", description="makes a retry safe", min_length=1, max_length=200),
]


class Metrics:
    """The counters of one application. Each has a registry of its own, so that two in one process do not clash."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        self.requests = counter("priors_requests", "Requests", ["method", "route", "status"])
        self.latency = Histogram(
            "priors_request_seconds", "Time to answer", ["route"], buckets=_LATENCIES, registry=registry
        )
        self.recalls = counter("priors_recalls", "Recalls", ["purpose", "mode"])
        self.degraded = counter("priors_degraded", "Recalls without all of an arm", ["arm"])
        self.memories = counter("priors_memories", "Memories sent", ["outcome"])
        self.refused = counter("priors_refused", "Memories that were not stored", ["reason"])
        self.refusals = gauge(
            "priors_refusals",
            "Memories and observations that the store refused, as its database counts them, whoever sent them",
            ["reason"],
        )
        self.reports = counter("priors_reports", "Report files sent", ["outcome"])
        self.sessions = counter("priors_sessions", "Sessions sent", ["outcome"])
        self.waiting = gauge("priors_embeddings_waiting", "Memories that wait for a vector")
        self.pending_links = gauge("priors_links_pending", "Memories that wait for links")
        self.jobs = gauge("priors_jobs", "Background jobs: due now, or failed for good", ["state"])
        self.workers = gauge("priors_workers", "Workers that are running")
        self.moved = gauge(
            "priors_reembed_memories",
            "Memories, and how many of them have a vector of the model that the store moves to",
            ["model", "count"],
        )

    def note_gauges(self, found: Gauges) -> None:
        """Shows the figures that other processes change too, such as the memories that a worker refused."""
        self.waiting.set(found.pending)
        self.pending_links.set(found.pending_links)
        self.jobs.labels("due").set(found.jobs.due)
        self.jobs.labels("failed").set(found.jobs.failed)
        self.workers.set(found.jobs.workers)
        for reason, count in found.refused.items():
            self.refusals.labels(reason).set(count)
        self.note_move(found.move)

    def note_move(self, move: Move | None) -> None:
        """Shows the progress of a change of model; shows nothing if no change is in progress."""
        self.moved.clear()
        if move is not None:
            self.moved.labels(move.model.name, "embedded").set(move.done)
            self.moved.labels(move.model.name, "all").set(move.total)

    def note_recall(self, recall: Recall) -> None:
        """Counts a recall."""
        self.recalls.labels(recall.query.purpose, recall.mode).inc()
        for item in recall.degraded:
            self.degraded.labels(item.arm).inc()

    def note_remembered(self, result: Remembered) -> None:
        """Counts the memories of a call."""
        for outcome, count in (
            ("stored", result.stored),
            ("updated", result.updated),
            ("unchanged", result.unchanged),
            ("rejected", len(result.rejected)),
        ):
            self.memories.labels(outcome).inc(count)
        for item in result.rejected:
            self.refused.labels(item.code).inc()

    def exposition(self) -> bytes:
        """Returns the text that Prometheus reads."""
        return generate_latest(self.registry)


def token_of(authorization: bytes) -> bytes:
    """Returns the bearer token of an Authorization header. The scheme's name may be of any case (RFC 9110)."""
    scheme, _, token = authorization.partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" else b""


class _SlowRecall(NamedTuple):
    """A recall that took long, and the milliseconds of its request's steps until then."""

    recall: Recall
    steps: Mapping[str, float]

    def note(self, **more: object) -> None:
        """Writes a line of the service's log. It has no text of the query; the log of recalls has that by its id."""
        recall = self.recall
        facts = {"recall_id": str(recall.recall_id), "workspace": recall.workspace.name, "mode": recall.mode}
        logger.warning("slow recall", took_ms=round(recall.took_ms, 1), **facts, steps=self.steps, **more)


@dataclass(slots=True)
class ApplicationContext:
    """One application's services and metrics."""

    services: Services | None
    metrics: Metrics
    model_loaded: bool = False
    model_tried: asyncio.Event = field(default_factory=asyncio.Event)
    """Set after the first attempt to load the model, whether it succeeded or failed."""

    slow: asyncio.Queue[_SlowRecall] = field(default_factory=lambda: asyncio.Queue(1))
    """A slow recall whose plans are still to be read: one at a time, after its answer."""
    _keys: KnownKeys | None = None

    @property
    def keys(self) -> KnownKeys:
        """The keys of the store."""
        if self._keys is None:
            self._keys = KnownKeys(self.opened.database)
        return self._keys

    @property
    def opened(self) -> Services:
        """The services, once the application has started."""
        assert self.services is not None, "requests come after the start"  # noqa: S101
        return self.services


@dataclass(frozen=True, slots=True)
class Call:
    """A request, as handlers take it: its application's context, its tenant, its key, and its user."""

    state: State
    workspace: str | None = None
    key: Key = EVERYTHING
    user: str | None = None
    """The user whose rows are seen and written, "" for nobody; None for those of all users, as people see them."""
    shared: bool = False
    """True if nobody's rows are seen too, as recalls see them."""

    @property
    def context(self) -> ApplicationContext:
        """The application's context."""
        return cast("ApplicationContext", self.state.context)

    @property
    def services(self) -> Services:
        """The application's services."""
        return self.context.opened

    @property
    def metrics(self) -> Metrics:
        """The application's metrics."""
        return self.context.metrics

    @property
    def settings(self) -> Settings:
        """The service's settings."""
        return self.services.settings

    @property
    def database(self) -> Database:
        """The service's database."""
        return self.services.database

    @property
    def lack(self) -> str:
        """The reason why the store may not have everything yet that it is asked for; "" if there is none."""
        return examples.NOT_ALL_STORED if examples.are_being_stored(self.settings.data_dir) else ""

    async def tenant(self) -> Workspace:
        """Returns the workspace of the header, as the call's user sees it. It asks the database.

        Without a header, it is the only one that the key serves, or else the configured default.

        Raises:
            InvalidInput: a workspace or a user may not have this name.
            Forbidden: the key does not serve it, whether it exists or not.
        """
        settings = self.settings
        name = self.workspace or self.key.own_workspace or settings.workspace
        if not self.key.serves(name):
            if not self.workspace:
                raise Forbidden("this key does not serve the default workspace: name one of its own by `X-Workspace`")
            raise Forbidden("this key does not serve the workspace that `X-Workspace` names")
        found = await self.services.workspaces.resolve(name)
        if self.user is None:
            return found
        return found.for_reading(self.user) if self.shared else found.of(self.user)

    async def writer(self) -> Workspace:
        """Returns the tenant as the call's user writes it, or as nobody does."""
        return (await self.tenant()).of(self.user)

    def note_recall(self, recall: Recall) -> None:
        """Counts a recall, and asks for the plans of a slow one, unless another is being looked at."""
        self.metrics.note_recall(recall)
        if recall.took_ms >= SLOW_RECALL_MS:
            slow = _SlowRecall(recall, times())
            try:
                self.context.slow.put_nowait(slow)
            except asyncio.QueueFull:
                slow.note()

    def asked_by(self, user: str | None) -> "Call":
        """Returns the call as one that an agent makes for a user: it sees what is this user's, and what is nobody's."""
        return replace(self, user=user or "", shared=True)


def key_of(scope: Scope) -> Key:
    """Returns the key that the frame found for a request; everything is allowed where no frame stands around."""
    return cast("dict[str, Key]", scope).get(KEY, EVERYTHING)


def call_of(state: State, request: Request[Any, Any, Any], workspace: _WorkspaceHeader = None) -> Call:
    """Returns the call of a request."""
    return Call(state, workspace, key_of(request.scope))


def _call_for_user(
    state: State, request: Request[Any, Any, Any], workspace: _WorkspaceHeader = None, user: _UserParameter = None
) -> Call:
    """Returns the call of a request that may be narrowed to a user."""
    return Call(state, workspace, key_of(request.scope), user)


BY_USER = {"call": Provide(_call_for_user, sync_to_thread=False)}
"""The dependencies of a route that may be narrowed to a user by `?user=`."""
ThisCall = NamedDependency[Call]
"""The type by which a handler gets its call."""
Wait = Annotated[
    bool,
    QueryParameter(description="answer once everything that follows is made: vectors, observations, cues, issues"),
]


_NAMED, _MESSAGES = ("/api/sessions/", "/api/runs/", "/api/users/", "/api/cases/"), "/messages"
"""The routes with a name at their end, and what may follow the id of a session."""


def join_name(scope: HTTPScope) -> None:
    """Makes the name at the end of a path one segment of the path that is routed: a name may have slashes.

    `name_of` reads it.
    """
    route = next(filter(scope["path"].startswith, _NAMED), None)
    if route is None:
        return
    raw = (scope.get("raw_path") or quote(scope["path"]).encode()).decode("latin-1")
    _, _, name = raw.partition(route)
    suffix = _MESSAGES if route == _NAMED[0] and name.endswith(_MESSAGES) and name != _MESSAGES else ""
    if name:
        scope["path"] = route + quote(unquote_to_bytes(name.removesuffix(suffix)), safe="") + suffix


def name_of(segment: str) -> str:
    """Returns the name in the segment of a path.

    Raises:
        InvalidInput: it is not UTF-8.
    """
    try:
        return unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        message = "its last part is not UTF-8: percent-encode the UTF-8 bytes of the name"
        raise InvalidInput("path", message) from None
