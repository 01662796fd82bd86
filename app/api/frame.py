"""What stands around every request: its id, the bearer token, the access log and the request metrics.

Plain ASGI, because it is on the hot path of an answer that takes 10 ms.
"""

import hmac
import re
import time
from collections.abc import Iterable
from uuid import uuid4

import msgspec
import structlog
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from app.api.metrics import Metrics
from app.api.panel import is_open
from app.api.problems import MEDIA_TYPE, Problem

OPEN_ROUTES = frozenset({"/health"})
SANE_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
UNKNOWN_ROUTE = "unknown"

logger = structlog.get_logger()


class Frame:
    """Wraps an application."""

    def __init__(self, app: ASGIApp, *, api_key: str, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics
        self._expected = f"Bearer {api_key}".encode() if api_key else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; the start and the end of the application pass through."""
        if scope["type"] == ScopeType.HTTP:
            await self._answer(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _answer(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        request_id = _request_id(scope["headers"])
        status = 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            if self._refused(scope):
                await _refuse(sending, scope["path"], request_id)
            else:
                await self._app(scope, receive, sending)
            self._note(scope, status, time.perf_counter() - started)

    def _refused(self, scope: HTTPScope) -> bool:
        path = scope["path"]
        if self._expected is None or path in OPEN_ROUTES or is_open(path):
            return False
        given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        return not hmac.compare_digest(given, self._expected)

    def _note(self, scope: HTTPScope, status: int, seconds: float) -> None:
        route = str(scope.get("path_template") or UNKNOWN_ROUTE)
        self._metrics.requests.labels(scope["method"], route, status).inc()
        self._metrics.latency.labels(route).observe(seconds)
        logger.info("request", method=scope["method"], path=scope["path"], status=status, ms=round(seconds * 1000, 1))


def _request_id(headers: Iterable[tuple[bytes, bytes]]) -> str:
    given = next((value for name, value in headers if name == b"x-request-id"), b"")
    return given.decode() if SANE_ID.fullmatch(given) else uuid4().hex


async def _refuse(send: Send, path: str, request_id: str) -> None:
    problem = Problem(
        title="Unauthorized",
        status=401,
        detail="this service asks for its API key: send `Authorization: Bearer …`",
        instance=path,
        request_id=request_id,
    )
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"www-authenticate", b"Bearer")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": msgspec.json.encode(problem), "more_body": False})
