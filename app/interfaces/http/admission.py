"""Decides who may call, and how often; the frame around every request: its id, its key, its log and metrics."""

import hmac
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from http import HTTPStatus
from math import ceil
from typing import Any
from urllib.parse import unquote
from uuid import UUID, uuid4

import msgspec
import structlog
from litestar.enums import ScopeType
from litestar.exceptions import ClientException
from litestar.types import ASGIApp, HTTPReceiveMessage, HTTPScope, Message, Receive, Scope, Send

from app import tracing
from app.errors import Unavailable
from app.foundation.db.audit import SIGNED, Actor, acting_as
from app.foundation.text.data import unstorable
from app.foundation.values import frozen
from app.interfaces.http.context import KEY, Metrics, join_name, token_of
from app.interfaces.http.panel import is_open
from app.interfaces.http.schemas import MEDIA_TYPE, UNEXPECTED, Problem
from app.settings import Settings
from app.storage.tenants.keys import ADMIN, EVERYTHING, PREFIX, SCOPES, Key
from app.storage.tenants.service import KnownKeys

_MINUTE = 60.0
MOST_COUNTED = 10_000
"""Callers that a process counts at once; beyond them, the one that was counted first begins anew."""


@dataclass(slots=True)
class _Left:
    """A caller's remaining requests at a moment, in seconds."""

    most: int
    requests: float
    at: float


class Limits:
    """Counts what each key uses; 0 stands for no limit.

    A caller may use a minute's worth at once, and gets it back evenly over a minute; under a new limit it begins anew.
    """

    def __init__(self, requests: int) -> None:
        self._default = requests
        self._callers: dict[tuple[UUID | None, str], _Left] = {}

    def wait(self, key: Key, now: float) -> int:
        """Takes one request of a key; returns the whole seconds after which to try again, 0 if it is admitted."""
        most = self._default if key.requests_per_minute is None else key.requests_per_minute
        if key is EVERYTHING or not most:
            return 0
        left = self._allowance(key, most, now)
        if left.requests < 1:
            return max(1, ceil((1 - left.requests) / most * _MINUTE))
        left.requests -= 1
        return 0

    def _allowance(self, key: Key, most: int, now: float) -> _Left:
        caller = (key.key_id, key.who)
        left = self._callers.get(caller)
        if left is None or left.most != most:
            while len(self._callers) >= MOST_COUNTED:
                del self._callers[next(iter(self._callers))]
            left = self._callers[caller] = _Left(most, float(most), now)
        left.requests = min(most, left.requests + max(0.0, now - left.at) / _MINUTE * most)
        left.at = now
        return left


_OPEN_ROUTES = frozenset({"/health"})
_LOOPBACK = re.compile(r"(localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?", re.IGNORECASE)
"""The names of this machine for itself, in the form of a Host header."""
_LONGEST_NAME = 100
"""Characters of a reviewer's name that the audit log keeps, as many as the panel takes."""


@frozen
class _Refusal:
    """An answer that ends a request here."""

    status: int
    detail: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


NO_KEY = _Refusal(
    status=401,
    detail="this service asks for its API key: send `Authorization: Bearer …`",
    headers=((b"www-authenticate", b"Bearer"),),
)
_WRONG_KEY = replace(
    NO_KEY,
    detail="this API key is not valid here: it is wrong, revoked or expired; an administrator makes another"
    " (`priors key create`)",
    headers=((b"www-authenticate", b'Bearer error="invalid_token"'),),
)
_FOREIGN = _Refusal(
    status=403,
    detail="without an API key this service answers only its own machine, and no page of another site: call it by"
    " 127.0.0.1 or localhost, or set PRIORS_API_KEY",
)
_UNREAD = _Refusal(
    status=503,
    detail="the database cannot be read now, so the key cannot be checked; try again later",
    headers=((b"retry-after", b"5"),),
)
_TOO_MUCH = _Refusal(status=429, detail="")

logger = structlog.get_logger()


def _configured_keys(settings: Settings) -> dict[bytes, Key]:
    """Returns the keys of the settings. They serve all workspaces; if there is an admin key, only it has `admin`."""
    keys = dict[bytes, Key]()
    if settings.api_key:
        scopes = frozenset(SCOPES) - ({ADMIN} if settings.admin_key else set())
        keys[settings.api_key.encode()] = Key(name="PRIORS_API_KEY", scopes=scopes, workspaces=None)
    if settings.admin_key:
        keys[settings.admin_key.encode()] = Key(
            name="PRIORS_ADMIN_KEY", scopes=frozenset(SCOPES), workspaces=None, personal=True
        )
    return keys


class Admission:
    """Decides who may call an application.

    A service without a key in its settings answers its own machine without one, until a key is stored: then each
    request needs a key.
    """

    def __init__(self, known: Callable[[], KnownKeys], settings: Settings) -> None:
        self._known = known
        self._keys = _configured_keys(settings)
        self._limits = Limits(settings.key_requests)
        self._closed = bool(self._keys)

    async def of(self, scope: HTTPScope) -> Key | _Refusal:
        """Returns the powers of a request within the limits of its key, or the reason why it is refused."""
        key = await self._key_of(scope)
        if isinstance(key, _Refusal) or not (seconds := self._limits.wait(key, time.monotonic())):
            return key
        detail = f"this key has used up its requests for now; try again in {seconds} s"
        return replace(_TOO_MUCH, detail=detail, headers=((b"retry-after", str(seconds).encode()),))

    async def _key_of(self, scope: HTTPScope) -> Key | _Refusal:
        path = scope["path"]
        if path in _OPEN_ROUTES:
            return EVERYTHING
        if is_open(path):
            return EVERYTHING if self._closed else self._without_key(scope)
        token = token_of(header(scope, b"authorization"))
        for secret, key in self._keys.items():
            if hmac.compare_digest(token, secret):
                return key
        try:
            return await self._of_the_store(scope, token)
        except Unavailable as error:
            # Where a disk takes no changes, even what only reads may fail: it may have to write pages to make room.
            logger.error("request failed", path=path, reason=str(error))  # noqa: TRY400 - the reason is known
            return _UNREAD

    async def _of_the_store(self, scope: HTTPScope, token: bytes) -> Key | _Refusal:
        if token.startswith(PREFIX.encode()) and (key := await self._known().find(token)):
            return key
        if self._closed or await self._known().exist():
            return _WRONG_KEY if token else NO_KEY
        return self._without_key(scope)

    def _without_key(self, scope: HTTPScope) -> Key | _Refusal:
        return EVERYTHING if _from_here(scope) else _FOREIGN


def header(scope: Scope, name: bytes) -> bytes:
    """Returns the first value of a header; b"" if it is not there."""
    return next((value for key, value in scope["headers"] if key == name), b"")


def is_panels(scope: Scope) -> bool:
    """Tells whether the panel asks, as its browser says."""
    return header(scope, b"sec-fetch-site") == b"same-origin"


def _from_here(scope: HTTPScope) -> bool:
    """Tells whether the request is meant for this machine and comes from no page of another site.

    Without a key, this check alone keeps foreign web pages from writing into the store. A page that is open on this
    machine could post a form or run a script, or its own host name could resolve to this machine. A link from another
    site to the panel is allowed: its files hold no data.
    """
    if header(scope, b"sec-fetch-site") == b"cross-site" and not is_open(scope["path"]):
        return False
    host, origin = header(scope, b"host").decode("latin-1"), header(scope, b"origin").decode("latin-1")
    return bool(_LOOPBACK.fullmatch(host)) and (not origin or origin.partition("://")[2] == host)


_SANE_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_UNKNOWN_ROUTE = "unknown"
WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods whose requests have no body, and change nothing."""
_GUARDS = {
    b"x-content-type-options": b"nosniff",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}
"""Headers of every answer that does not say otherwise: it is data of one tenant, for whoever asked alone."""
_FAILED = _Refusal(status=500, detail=UNEXPECTED)

_CLOSED = 499
"""The status that logs and metrics note where a client went away before its answer; nobody receives it."""


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
        given = header(scope, b"x-request-id")
        request_id = given.decode() if _SANE_ID.fullmatch(given) else uuid4().hex
        status = 500
        body = _Body(receive, complete=scope["method"] in WITHOUT_BODY)

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = _CLOSED if body.broken_off else message["status"]
                message["headers"] = [
                    *_with_guards(message.get("headers", ())),
                    (b"x-request-id", request_id.encode()),
                ]
            await send(message)

        with (
            structlog.contextvars.bound_contextvars(request_id=request_id),
            tracing.request(scope["method"], scope["path"], scope["headers"]) as sent,
        ):
            admitted = await self._admit(scope)
            if isinstance(admitted, _Refusal):
                await _refuse(sending, admitted, scope["path"], request_id)
            else:
                scope[KEY] = admitted  # type: ignore[literal-required]  # ASGI leaves names with a dot to servers
                join_name(scope)
                with acting_as(Actor(_caller(scope, admitted), request_id=request_id, key_id=admitted.key_id)):
                    await self._app(scope, body.receive, sending)
            route = str(scope.get("path_template") or _UNKNOWN_ROUTE)
            sent(route, status)
            self._note(scope, route, status, time.perf_counter() - started)

    async def _admit(self, scope: HTTPScope) -> Key | _Refusal:
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
            ClientException: the client went away in the middle of the body.
        """
        message: Any = await self._receive()
        if message["type"] == "http.disconnect" and not self._complete:
            self.broken_off = True
            raise ClientException(detail="the client went away before it had sent its whole request")
        self._complete = self._complete or not message.get("more_body", False)
        return message  # type: ignore[no-any-return]  # an HTTP request gets no other messages


def _with_guards(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Returns the headers of an answer with those of _GUARDS that it lacks."""
    given = list(headers)
    present = {name.lower() for name, _ in given}
    return [*given, *(item for item in _GUARDS.items() if item[0] not in present)]


def _caller(scope: HTTPScope, key: Key) -> str:
    """Returns the name of whoever asks, as the audit log has it; the panel's with that of its reviewer."""
    if not is_panels(scope):
        return "anyone" if key is EVERYTHING else key.who
    who = "panel" if key is EVERYTHING else key.who
    reviewer = " ".join(unquote(header(scope, b"x-reviewer").decode("latin-1"))[:_LONGEST_NAME].split())
    return f"{who}{SIGNED}{reviewer}" if reviewer and not any(unstorable(reviewer)) else who


async def _refuse(send: Send, refusal: _Refusal, path: str, request_id: str) -> None:
    problem = Problem(
        title=HTTPStatus(refusal.status).phrase,
        status=refusal.status,
        detail=refusal.detail,
        instance=path,
        request_id=request_id,
    )
    headers = [(b"content-type", MEDIA_TYPE.encode()), *refusal.headers]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": msgspec.json.encode(problem), "more_body": False})
