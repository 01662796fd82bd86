"""The frame around every request: its id, the bearer token, the access log and the request metrics.

Plain ASGI, because it is on the hot path of an answer that takes 10 ms.
"""

import hmac
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import uuid4

import msgspec
import structlog
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from app.api.arrival import CLOSED, Arrival
from app.api.context import Metrics, join_session_id, token_of
from app.api.panel import is_open
from app.api.problems import MEDIA_TYPE, Problem

OPEN_ROUTES = frozenset({"/health"})
LOOPBACK = re.compile(r"(localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?", re.IGNORECASE)
"""The names of this machine for itself, in the form of a Host header."""
SANE_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
UNKNOWN_ROUTE = "unknown"
WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS"})
GUARDS = {
    b"x-content-type-options": b"nosniff",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}
"""Headers of every answer that does not say otherwise: it is data of one tenant, for whoever asked alone."""

logger = structlog.get_logger()


class Frame:
    """Wraps an application."""

    def __init__(self, app: ASGIApp, *, keys: Iterable[str], metrics: Metrics, read_timeout: float) -> None:
        self._app, self._metrics, self._read_timeout = app, metrics, read_timeout
        self._keys = [key.encode() for key in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request; passes the start and the end of the application through."""
        if scope["type"] == ScopeType.HTTP:
            await self._answer(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _answer(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        request_id = _request_id(scope)
        status = 500
        arrival = Arrival(receive, has_body=scope["method"] not in WITHOUT_BODY, seconds=self._read_timeout)

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = CLOSED if arrival.broken_off else message["status"]
                message["headers"] = [*_guarded(message.get("headers", ())), (b"x-request-id", request_id.encode())]
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            refusal = self.refusal(scope)
            if refusal is None:
                join_session_id(scope)
                await self._app(scope, arrival.receive, sending)
            else:
                await _refuse(sending, refusal, scope["path"], request_id)
            self._note(scope, status, time.perf_counter() - started)

    def refusal(self, scope: HTTPScope) -> "Refusal | None":
        """Returns the reason why a request is refused; None if it is accepted."""
        path = scope["path"]
        if path in OPEN_ROUTES or (self._keys and is_open(path)):
            return None
        if not self._keys:
            return None if _from_here(scope) else FOREIGN
        token = token_of(_header(scope, b"authorization"))
        return None if any(hmac.compare_digest(token, key) for key in self._keys) else NO_KEY

    def _note(self, scope: HTTPScope, status: int, seconds: float) -> None:
        route = str(scope.get("path_template") or UNKNOWN_ROUTE)
        self._metrics.requests.labels(scope["method"], route, status).inc()
        self._metrics.latency.labels(route).observe(seconds)
        logger.info("request", method=scope["method"], path=scope["path"], status=status, ms=round(seconds * 1000, 1))


def _header(scope: HTTPScope, name: bytes) -> bytes:
    return next((value for key, value in scope["headers"] if key == name), b"")


def _guarded(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Returns the headers of an answer with those of GUARDS that it lacks."""
    given = list(headers)
    present = {name.lower() for name, _ in given}
    return [*given, *(item for item in GUARDS.items() if item[0] not in present)]


def _from_here(scope: HTTPScope) -> bool:
    """Tells whether the request is meant for this machine and comes from no page of another site.

    Without a key, this check alone keeps foreign web pages from writing into the store. A page that is open on this
    machine could post a form or run a script, or its own host name could resolve to this machine. A link from another
    site to the panel is allowed: its files hold no data.
    """
    if _header(scope, b"sec-fetch-site") == b"cross-site" and not is_open(scope["path"]):
        return False
    host, origin = _header(scope, b"host").decode("latin-1"), _header(scope, b"origin").decode("latin-1")
    return bool(LOOPBACK.fullmatch(host)) and (not origin or origin.partition("://")[2] == host)


def _request_id(scope: HTTPScope) -> str:
    given = _header(scope, b"x-request-id")
    return given.decode() if SANE_ID.fullmatch(given) else uuid4().hex


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An answer that ends a request here."""

    status: int
    title: str
    detail: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


NO_KEY = Refusal(
    status=401,
    title="Unauthorized",
    detail="this service asks for its API key: send `Authorization: Bearer …`",
    headers=((b"www-authenticate", b"Bearer"),),
)
FOREIGN = Refusal(
    status=403,
    title="Forbidden",
    detail="without an API key this service answers only its own machine, and no page of another site: call it by"
    " 127.0.0.1 or localhost, or set PRIORS_API_KEY",
)


async def _refuse(send: Send, refusal: Refusal, path: str, request_id: str) -> None:
    problem = Problem(
        title=refusal.title, status=refusal.status, detail=refusal.detail, instance=path, request_id=request_id
    )
    headers = [(b"content-type", MEDIA_TYPE.encode()), *refusal.headers]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": msgspec.json.encode(problem), "more_body": False})
