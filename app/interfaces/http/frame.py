"""The frame around every request: its id, its key, the access log and the request metrics.

Plain ASGI, because it is on the hot path of an answer that takes 10 ms.
"""

import re
import time
from collections.abc import Iterable
from typing import Any
from uuid import uuid4

import msgspec
import structlog
from litestar.enums import ScopeType
from litestar.exceptions import ClientException
from litestar.types import ASGIApp, HTTPReceiveMessage, HTTPScope, Message, Receive, Scope, Send

from app import tracing
from app.foundation.db.audit import Actor, acting_as
from app.foundation.db.replicas import Seen, seeing
from app.interfaces.http.admission import Admission, Refusal, header, is_panels
from app.interfaces.http.context import KEY, Metrics, join_session_id
from app.interfaces.http.problems import MEDIA_TYPE, UNEXPECTED, Problem
from app.storage.tenants.keys import EVERYTHING, Key

_SANE_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_UNKNOWN_ROUTE = "unknown"
_POSITION = re.compile(rb"(?:^|; )priors_position=([0-9a-f]{1,16})(?:;|$)")
_WRITTEN = "priors_position={:x}; Max-Age=60; Path=/; HttpOnly; SameSite=Strict"
"""The cookie of a caller who has written: its later requests see that, whichever process and replica answer. After a
minute each replica has it, or is not read from."""
_WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS"})
_GUARDS = {
    b"x-content-type-options": b"nosniff",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}
"""Headers of every answer that does not say otherwise: it is data of one tenant, for whoever asked alone."""
_FAILED = Refusal(status=500, title="Internal Server Error", detail=UNEXPECTED)

_CLOSED = 499
"""The status that logs and metrics note where a client went away before its answer; nobody receives it."""

logger = structlog.get_logger()


class Gone(ClientException):
    """The client went away before it had sent its whole request."""


class Frame:
    """Wraps an application."""

    def __init__(self, app: ASGIApp, *, admission: Admission, metrics: Metrics) -> None:
        self._app, self._metrics, self._admission = app, metrics, admission

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
        positions = Seen(_required_position(scope))

        body = _Body(receive, complete=scope["method"] in _WITHOUT_BODY)

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = _CLOSED if body.broken_off else message["status"]
                more = [(b"x-request-id", request_id.encode()), *_cookies(positions)]
                message["headers"] = [*_with_guards(message.get("headers", ())), *more]
            await send(message)

        with (
            structlog.contextvars.bound_contextvars(request_id=request_id),
            tracing.request(scope["method"], scope["path"], scope["headers"]) as sent,
            seeing(positions),
        ):
            admitted = await self._admit(scope)
            if isinstance(admitted, Refusal):
                await _refuse(sending, admitted, scope["path"], request_id)
            else:
                scope[KEY] = admitted  # type: ignore[literal-required]  # ASGI leaves names with a dot to servers
                join_session_id(scope)
                with acting_as(Actor(_caller(scope, admitted), request_id=request_id, key_id=admitted.key_id)):
                    await self._app(scope, body.receive, sending)
            route = str(scope.get("path_template") or _UNKNOWN_ROUTE)
            sent(route, status)
            self._note(scope, route, status, time.perf_counter() - started)

    async def _admit(self, scope: HTTPScope) -> Key | Refusal:
        """Returns what the admission decides. If that fails, the request is refused as one that fails later."""
        try:
            return await self._admission.of(scope)
        except Exception:
            # Raised further, the server would answer it with plain text and without a request id.
            logger.exception("request failed", path=scope["path"])
            return _FAILED

    def _note(self, scope: HTTPScope, route: str, status: int, seconds: float) -> None:
        self._metrics.requests.labels(scope["method"], route, status).inc()
        self._metrics.latency.labels(route).observe(seconds)
        logger.info("request", method=scope["method"], path=scope["path"], status=status, ms=round(seconds * 1000, 1))


class _Body:
    """Receives the body of one request."""

    def __init__(self, receive: Receive, *, complete: bool) -> None:
        self._receive, self._complete = receive, complete
        self.broken_off = False
        """True where the client went away in the middle of the body."""

    async def receive(self) -> HTTPReceiveMessage:
        """Returns the next piece; once the body is complete, it waits for the end of the connection.

        Raises:
            Gone: the client went away in the middle of the body.
        """
        message: Any = await self._receive()
        if message["type"] == "http.disconnect" and not self._complete:
            self.broken_off = True
            raise Gone(detail="the client went away before it had sent its whole request")
        self._complete = self._complete or not message.get("more_body", False)
        return message  # type: ignore[no-any-return]  # an HTTP request gets no other messages


def _with_guards(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Returns the headers of an answer with those of _GUARDS that it lacks."""
    given = list(headers)
    present = {name.lower() for name, _ in given}
    return [*given, *(item for item in _GUARDS.items() if item[0] not in present)]


def _request_id(scope: HTTPScope) -> str:
    given = header(scope, b"x-request-id")
    return given.decode() if _SANE_ID.fullmatch(given) else uuid4().hex


def _required_position(scope: HTTPScope) -> int:
    """Returns the position in the primary's log that the caller has written up to; 0 if it names none."""
    named = _POSITION.search(header(scope, b"cookie"))
    return int(named[1], 16) if named else 0


def _cookies(positions: Seen) -> list[tuple[bytes, bytes]]:
    """Returns the header that makes a caller's later requests see what this one has written until now."""
    return [(b"set-cookie", _WRITTEN.format(positions.written).encode())] if positions.written else []


def _caller(scope: HTTPScope, key: Key) -> str:
    """Returns the name of whoever asks, as the audit log has it."""
    if key is not EVERYTHING:
        return key.who
    return "panel" if is_panels(scope) else "anyone"


async def _refuse(send: Send, refusal: Refusal, path: str, request_id: str) -> None:
    problem = Problem(
        title=refusal.title, status=refusal.status, detail=refusal.detail, instance=path, request_id=request_id
    )
    headers = [(b"content-type", MEDIA_TYPE.encode()), *refusal.headers]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": msgspec.json.encode(problem), "more_body": False})
