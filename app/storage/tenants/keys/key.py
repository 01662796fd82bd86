"""An API key, the scopes and workspaces that it has, and its secret. Pure.

A secret has 256 random bits, so a plain hash of it is enough: nobody can try all of them. The store keeps only the
hash.
"""

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated
from uuid import UUID

from msgspec import Meta, Struct

from app.errors import Forbidden, check, limit_reasons
from app.storage.tenants.workspace import NAME as WORKSPACE_NAME
from app.storage.tenants.workspace import NAME_RULE

READ, WRITE, RATE, ADMIN = "read", "write", "rate", "admin"
KEY, TOKEN = "key", "token"
SCOPES = (READ, WRITE, RATE, ADMIN)
"""`read` asks and lists, `write` stores and changes, `rate` judges, `admin` does all of it and manages keys."""
PREFIX = "priors_"
"""The beginning of each secret, by which people and scanners know it."""
_SECRET_BYTES = 32
_LONGEST_NAME = 100
_LONGEST_LIFE = timedelta(days=3_660)
_MOST_WORKSPACES = 1_000
_HIGHEST_LIMIT = 10**12
"""The highest limit of a key's use, in requests a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """The powers of whoever sends a key."""

    name: str
    scopes: frozenset[str]
    workspaces: tuple[str, ...] | None
    """The workspaces that it serves; None for all."""
    key_id: UUID | None = None
    """None for a key that is a setting, and for calls that need no key."""
    personal: bool = False
    """True if only people have it, so that it may do what a person must do."""
    kind: str = KEY
    """KEY, or TOKEN for a token of an issuer: it may have the name of a key."""
    requests_per_minute: int | None = None
    """None for the setting's number, 0 for no limit."""

    @property
    def who(self) -> str:
        """The caller, as the audit log names it."""
        return f"{self.kind} {self.name}"

    def has(self, scope: str) -> bool:
        """Tells whether the key has a scope; `admin` includes every other."""
        return scope in self.scopes or ADMIN in self.scopes

    def serves(self, workspace: str) -> bool:
        """Tells whether the key may name a workspace."""
        return self.workspaces is None or workspace in self.workspaces

    @property
    def own_workspace(self) -> str | None:
        """The workspace of a call that names none: the only one of the key, None if it has several or all."""
        return self.workspaces[0] if self.workspaces is not None and len(self.workspaces) == 1 else None

    def demand(self, scope: str) -> None:
        """Checks that the key has a scope.

        Raises:
            Forbidden: it does not have it.
        """
        if not self.has(scope):
            raise Forbidden(f"this needs a key with the scope `{scope}`; this one has {', '.join(sorted(self.scopes))}")


EVERYTHING = Key(name="", scopes=frozenset(SCOPES), workspaces=None)
"""The powers of a call to a service that asks for no key."""


RequestLimit = Annotated[int, Meta(ge=0, le=_HIGHEST_LIMIT)] | None


class NewKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key to be made."""

    name: Annotated[str, Meta(min_length=1, max_length=_LONGEST_NAME, description="tells it from other keys")]
    scopes: Annotated[Sequence[str], Meta(min_length=1, max_length=10, description="read, write, rate, admin")]
    workspaces: Annotated[Sequence[str], Meta(min_length=1, max_length=_MOST_WORKSPACES)] | None = None
    """The workspaces that it serves; None for all."""
    expires_at: datetime | None = None
    requests_per_minute: RequestLimit = None
    """None for the setting's number, 0 for no limit."""


class StoredKey(Struct, frozen=True, kw_only=True, rename={"key_id": "id"}):
    """A key as it is listed: everything but its secret, which nobody can read again."""

    key_id: UUID
    name: str
    scopes: tuple[str, ...]
    workspaces: tuple[str, ...] | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    """Exact to a minute."""
    replaces: UUID | None
    """The key that this one was made to replace."""
    requests_per_minute: int | None
    """Requests a minute; None for the setting's, 0 for no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeKey:
    """A new key with its secret, which is shown this once."""

    key: StoredKey
    secret: str


def new_secret() -> str:
    """Returns a secret that nobody has yet."""
    return PREFIX + secrets.token_urlsafe(_SECRET_BYTES)


def digest_of(secret: str | bytes) -> bytes:
    """Returns the SHA-256 of a secret, 32 bytes."""
    return hashlib.sha256(secret.encode() if isinstance(secret, str) else secret).digest()


def check_new_key(wanted: NewKey, *, now: datetime | None = None) -> NewKey:
    """Returns `wanted` if such a key can be made.

    Raises:
        InvalidInput: the name, a scope, a workspace or the date of expiry is not valid.
    """
    check(_objections(wanted, now or datetime.now(UTC)))
    check_limit(wanted.requests_per_minute)
    return wanted


def check_limit(requests_per_minute: int | None) -> None:
    """Raises InvalidInput if a limit is below 0 or above _HIGHEST_LIMIT."""
    check(limit_reasons({"requests_per_minute": requests_per_minute}, _HIGHEST_LIMIT))


def _objections(wanted: NewKey, now: datetime) -> Iterator[str]:
    if not wanted.name.strip() or len(wanted.name) > _LONGEST_NAME or not wanted.name.isprintable():
        yield f"name: give the key a name of 1 to {_LONGEST_NAME} printable characters"
    if not wanted.scopes or not set(wanted.scopes) <= set(SCOPES):
        yield f"scopes: give at least one of {', '.join(SCOPES)}"
    if wanted.workspaces is not None:
        if not 1 <= len(wanted.workspaces) <= _MOST_WORKSPACES:
            yield f"workspaces: name 1 to {_MOST_WORKSPACES}, or none at all for a key of all workspaces"
        for name in wanted.workspaces:
            if not WORKSPACE_NAME.fullmatch(name):
                yield f"workspaces: {NAME_RULE}"
    if wanted.expires_at is not None and not now < wanted.expires_at < now + _LONGEST_LIFE:
        yield f"expires_at: must be in the future, within {_LONGEST_LIFE.days // 366} years"
