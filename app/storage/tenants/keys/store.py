"""The SQL of API keys. They belong to no workspace: the service's role finds one by its digest and cannot list them."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from app.foundation.db.session import Row, Session
from app.storage.tenants.keys.key import ADMIN, Key, NewKey, StoredKey

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
    return Key(
        key_id=row.key_id,
        name=row.name,
        scopes=scopes,
        workspaces=_names(row),
        personal=ADMIN in scopes,
        requests_per_minute=row.requests_per_minute,
    )


async def exist(session: Session) -> bool:
    """Tells whether there is a key that is not revoked. Expired ones count: a service must not open as time passes."""
    return bool(await session.value(_EXIST))


async def add(session: Session, key_id: UUID, digest: bytes, wanted: NewKey, *, replaces: UUID | None) -> StoredKey:
    """Stores a key."""
    given = {
        "key_id": key_id,
        "digest": "\\x" + digest.hex(),
        "name": wanted.name.strip(),
        "scopes": sorted(set(wanted.scopes)),
        "workspaces": None if wanted.workspaces is None else sorted(set(wanted.workspaces)),
        "expires_at": wanted.expires_at,
        "replaces": replaces,
        "requests_per_minute": wanted.requests_per_minute,
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
