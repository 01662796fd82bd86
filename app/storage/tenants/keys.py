"""API keys: their scopes, limits and secrets, and their SQL."""

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated
from uuid import UUID

from msgspec import Meta, Struct, structs

from app.errors import Forbidden, check, limit_reasons
from app.foundation.db.session import Row, Session
from app.foundation.text.data import check_value
from app.foundation.values import frozen
from app.storage.tenants.workspace import NAME as WORKSPACE_NAME
from app.storage.tenants.workspace import NAME_RULE

READ, WRITE, RATE, ADMIN = "read", "write", "rate", "admin"
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


@frozen
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
    requests_per_minute: int | None = None
    """None for the setting's number, 0 for no limit."""

    @property
    def who(self) -> str:
        """The caller, as the audit log names it."""
        return f"key {self.name}"

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


@frozen
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
    check_value(wanted)
    check(_objections(wanted, now or datetime.now(UTC)))
    check_limit(wanted.requests_per_minute)
    return wanted


def check_limit(requests_per_minute: int | None) -> None:
    """Raises InvalidInput if a limit is below 0 or above _HIGHEST_LIMIT."""
    check(limit_reasons({"requests_per_minute": requests_per_minute}, _HIGHEST_LIMIT))


def _objections(wanted: NewKey, now: datetime) -> Iterator[str]:
    if not wanted.name.strip() or not wanted.name.isprintable():
        yield f"name: give the key a name of 1 to {_LONGEST_NAME} printable characters"
    if not wanted.scopes or not set(wanted.scopes) <= set(SCOPES):
        yield f"scopes: give at least one of {', '.join(SCOPES)}"
    if not all(map(WORKSPACE_NAME.fullmatch, wanted.workspaces or ())):
        yield f"workspaces: {NAME_RULE}"
    if wanted.expires_at is not None and not now < wanted.expires_at < now + _LONGEST_LIFE:
        yield f"expires_at: must be in the future, within {_LONGEST_LIFE.days // 366} years"


_COLUMNS = """
    key_id, name, scopes, workspaces, created_at, expires_at, revoked_at, last_used_at, replaces,
    requests_per_minute
"""
_FIND = """
SELECT key_id, name, scopes, workspaces, requests_per_minute FROM priors_key(%(digest)s::bytea)
"""
_EXIST = "SELECT priors_keys_exist()"
_ADD = f"""
INSERT INTO api_keys (key_id, digest, name, scopes, workspaces, expires_at, replaces, requests_per_minute)
VALUES (%(key_id)s, %(digest)s::bytea, %(name)s, %(scopes)s::text[], %(workspaces)s::text[], %(expires_at)s,
    %(replaces)s, %(requests_per_minute)s)
RETURNING {_COLUMNS}
"""  # noqa: S608 - constants
_ALL = f"SELECT {_COLUMNS} FROM api_keys ORDER BY created_at DESC, key_id DESC"  # noqa: S608 - constants
_LOCK = f"SELECT {_COLUMNS} FROM api_keys WHERE key_id = %(key_id)s FOR UPDATE"  # noqa: S608 - constants
_REVOKE = f"""
UPDATE api_keys SET revoked_at = coalesce(revoked_at, now()) WHERE key_id = %(key_id)s RETURNING {_COLUMNS}
"""  # noqa: S608 - constants
_LIMIT = f"""
UPDATE api_keys SET requests_per_minute = %(requests_per_minute)s WHERE key_id = %(key_id)s RETURNING {_COLUMNS}
"""  # noqa: S608 - constants
_END = "UPDATE api_keys SET expires_at = least(expires_at, %(at)s) WHERE key_id = %(key_id)s"


async def find(session: Session, digest: bytes) -> Key | None:
    """Returns the key whose secret has this digest, if it is neither revoked nor expired; notes its use."""
    row = await session.row(_FIND, {"digest": "\\x" + digest.hex()})
    if row is None:
        return None
    scopes = frozenset(row.scopes)
    return Key(**{**row._asdict(), "scopes": scopes, "workspaces": _names(row)}, personal=ADMIN in scopes)


async def exist(session: Session) -> bool:
    """Tells whether there is a key that is not revoked. Expired ones count: a service must not open as time passes."""
    return bool(await session.value(_EXIST))


async def add(session: Session, key_id: UUID, digest: bytes, wanted: NewKey, *, replaces: UUID | None) -> StoredKey:
    """Stores a key."""
    given = structs.asdict(wanted) | {
        "key_id": key_id,
        "digest": "\\x" + digest.hex(),
        "name": wanted.name.strip(),
        "scopes": sorted(set(wanted.scopes)),
        "workspaces": None if wanted.workspaces is None else sorted(set(wanted.workspaces)),
        "replaces": replaces,
    }
    return _stored_key(await session.one(_ADD, given))


async def all_of_them(session: Session) -> Sequence[StoredKey]:
    """Returns all keys, the newest first, those that are revoked or expired among them."""
    return [_stored_key(row) for row in await session.rows(_ALL)]


async def lock_key(session: Session, key_id: UUID) -> StoredKey | None:
    """Locks a key and returns it."""
    row = await session.row(_LOCK, {"key_id": key_id})
    return None if row is None else _stored_key(row)


async def revoke(session: Session, key_id: UUID) -> StoredKey:
    """Revokes a key; one that is revoked keeps the moment of it."""
    return _stored_key(await session.one(_REVOKE, {"key_id": key_id}))


async def limit(session: Session, key_id: UUID, requests_per_minute: int | None) -> StoredKey:
    """Gives a key this limit of its use."""
    return _stored_key(await session.one(_LIMIT, {"key_id": key_id, "requests_per_minute": requests_per_minute}))


async def end(session: Session, key_id: UUID, at: datetime) -> None:
    """Lets a key expire at this moment, unless it expires earlier."""
    await session.execute(_END, {"key_id": key_id, "at": at})


def _stored_key(row: Row) -> StoredKey:
    return StoredKey(**{**row._asdict(), "scopes": tuple(row.scopes), "workspaces": _names(row)})


def _names(row: Row) -> tuple[str, ...] | None:
    return None if row.workspaces is None else tuple(row.workspaces)
