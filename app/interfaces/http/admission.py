"""Who may call, and how often: the keys of the settings and of the store, and without any key this machine alone."""

import hmac
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from uuid import UUID

import structlog
from litestar.types import HTTPScope, Scope

from app.errors import IssuerUnavailable, Unavailable, WrongToken
from app.interfaces.http.context import token_of
from app.interfaces.http.panel import is_open
from app.settings import Settings
from app.storage.tenants.keys import ADMIN, EVERYTHING, PREFIX, RATE, READ, SCOPES, WRITE, Key
from app.storage.tenants.service import KnownKeys
from app.storage.tenants.tokens import Issuer, Trust

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
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
QUESTIONS = frozenset(
    {
        "/api/activate",
        "/api/check",
        "/api/contexts",
        "/api/contexts:compile",
        "/api/graph:walk",
        "/api/history",
        "/api/novelty",
        "/api/search",
    }
)
"""Routes that are asked by POST and change no memory."""
MIXED = frozenset({"/api/items:batch", "/mcp"})
"""Routes that demand a scope themselves for each operation that they are asked for."""
JUDGEMENTS = frozenset(
    {
        "/api/activations/{activation_id}/outcome",
        "/api/feedback/{feedback_id}",
        "/api/memories/{memory_id}/feedback",
    }
)
_DOTS_OF_A_TOKEN = 2
"""Dots in a JSON Web Token; a secret of this service has none."""
KEYS, AUDIT, QUOTA = "/api/keys", "/api/audit", "/api/quota"
_END_OF_A_USER = ("DELETE", "/api/users/{user}")
"""It destroys for good what no trash keeps."""
_LOOPBACK = re.compile(r"(localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?", re.IGNORECASE)
"""The names of this machine for itself, in the form of a Host header."""


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
_WRONG_KEY = replace(
    NO_KEY,
    detail="this API key is not valid here: it is wrong, revoked or expired; an administrator makes another"
    " (`priors key create`)",
    headers=((b"www-authenticate", b'Bearer error="invalid_token"'),),
)
_FOREIGN = Refusal(
    status=403,
    title="Forbidden",
    detail="without an API key this service answers only its own machine, and no page of another site: call it by"
    " 127.0.0.1 or localhost, or set PRIORS_API_KEY",
)
_UNREAD = Refusal(
    status=503,
    title="Service Unavailable",
    detail="the database cannot be read now, so the key cannot be checked; try again later",
    headers=((b"retry-after", b"5"),),
)
_TOO_MUCH = Refusal(status=429, title="Too Many Requests", detail="")

logger = structlog.get_logger()


def configured_keys(settings: Settings) -> dict[bytes, Key]:
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


def configured_issuer(settings: Settings) -> Issuer | None:
    """Returns the issuer of the settings, if they name one."""
    if not settings.oidc_issuer:
        return None
    trust = Trust(
        issuer=settings.oidc_issuer,
        audience=settings.oidc_audience,
        workspaces_claim=settings.oidc_workspaces_claim,
    )
    return Issuer(trust)


class Admission:
    """Decides who may call an application.

    A service without a key in its settings answers its own machine without one, until a key is stored: then each
    request needs a key.
    """

    def __init__(self, known: Callable[[], KnownKeys], settings: Settings) -> None:
        self._known = known
        self._keys = configured_keys(settings)
        self._issuer = configured_issuer(settings)
        self._limits = Limits(settings.key_requests)
        self._closed = bool(self._keys) or self._issuer is not None

    async def of(self, scope: HTTPScope) -> Key | Refusal:
        """Returns the powers of a request within the limits of its key, or the reason why it is refused."""
        key = await self._key_of(scope)
        if isinstance(key, Refusal) or not (seconds := self._limits.wait(key, time.monotonic())):
            return key
        detail = f"this key has used up its requests for now; try again in {seconds} s"
        return replace(_TOO_MUCH, detail=detail, headers=((b"retry-after", str(seconds).encode()),))

    async def _key_of(self, scope: HTTPScope) -> Key | Refusal:
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

    async def _of_the_store(self, scope: HTTPScope, token: bytes) -> Key | Refusal:
        if token.startswith(PREFIX.encode()) and (key := await self._known().find(token)):
            return key
        if self._issuer is not None and token.count(b".") == _DOTS_OF_A_TOKEN:
            return await _key_of_token(self._issuer, token)
        if self._closed or await self._known().exist():
            return _WRONG_KEY if token else NO_KEY
        return self._without_key(scope)

    def _without_key(self, scope: HTTPScope) -> Key | Refusal:
        return EVERYTHING if _from_here(scope) else _FOREIGN


async def _key_of_token(issuer: Issuer, token: bytes) -> Key | Refusal:
    try:
        return await issuer.admit(token.decode("latin-1"))
    except WrongToken as error:
        challenge = f'Bearer error="invalid_token", error_description="{error}"'
        return replace(NO_KEY, detail=str(error), headers=((b"www-authenticate", challenge.encode()),))
    except IssuerUnavailable as error:
        return replace(_UNREAD, detail=str(error))


def scope_of(method: str, route: str) -> str | None:
    """Returns the scope that a route demands: `write` for what changes something, unless a table above says more.

    None stands for a route of MIXED.
    """
    if route.startswith((KEYS, AUDIT, QUOTA)) or (method, route) == _END_OF_A_USER:
        return ADMIN
    if route in MIXED:
        return None
    if method in _SAFE_METHODS:
        return READ
    return RATE if route in JUDGEMENTS else READ if route in QUESTIONS else WRITE


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
