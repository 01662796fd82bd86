"""The SQL of API keys. They belong to no workspace: the service's role finds one by its digest and cannot list them."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from app.foundation.db.session import Row, Session
from app.storage.tenants.keys.key import ADMIN, Key, NewKey, StoredKey

COLUMNS = """
    key_id, name, scopes, workspaces, created_at, expires_at, revoked_at, last_used_at, replaces,
    requests_per_minute
"""
FIND = """
SELECT key_id, name, scopes, workspaces, requests_per_minute FROM priors_key(%(digest)s::bytea)
"""
EXIST = "SELECT priors_keys_exist()"
ADD = f"""
INSERT INTO api_keys (key_id, digest, name, scopes, workspaces, expires_at, replaces, requests_per_minute)
VALUES (%(key_id)s, %(digest)s::bytea, %(name)s, %(scopes)s::text[], %(workspaces)s::text[], %(expires_at)s,
    %(replaces)s, %(requests_per_minute)s)
RETURNING {COLUMNS}
"""  # noqa: S608 - constants
ALL = f"SELECT {COLUMNS} FROM api_keys ORDER BY created_at DESC, key_id DESC"  # noqa: S608 - constants
LOCK = f"SELECT {COLUMNS} FROM api_keys WHERE key_id = %(key_id)s FOR UPDATE"  # noqa: S608 - constants
REVOKE = f"""
UPDATE api_keys SET revoked_at = coalesce(revoked_at, now()) WHERE key_id = %(key_id)s RETURNING {COLUMNS}
"""  # noqa: S608 - constants
LIMIT = f"""
UPDATE api_keys SET requests_per_minute = %(requests_per_minute)s WHERE key_id = %(key_id)s RETURNING {COLUMNS}
"""  # noqa: S608 - constants
END = "UPDATE api_keys SET expires_at = least(expires_at, %(at)s) WHERE key_id = %(key_id)s"


async def find(session: Session, digest: bytes) -> Key | None:
    """Returns the key whose secret has this digest, if it is neither revoked nor expired; notes its use."""
    row = await session.row(FIND, {"digest": "\\x" + digest.hex()})
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
    return bool(await session.value(EXIST))


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
    return _stored_key(await session.one(ADD, given))


async def all_of_them(session: Session) -> Sequence[StoredKey]:
    """Returns all keys, the newest first, those that are revoked or expired among them."""
    return [_stored_key(row) for row in await session.rows(ALL)]


async def lock_key(session: Session, key_id: UUID) -> StoredKey | None:
    """Locks a key and returns it."""
    row = await session.row(LOCK, {"key_id": key_id})
    return None if row is None else _stored_key(row)


async def revoke(session: Session, key_id: UUID) -> StoredKey:
    """Revokes a key; one that is revoked keeps the moment of it."""
    return _stored_key(await session.one(REVOKE, {"key_id": key_id}))


async def limit(session: Session, key_id: UUID, requests_per_minute: int | None) -> StoredKey:
    """Gives a key this limit of its use."""
    return _stored_key(await session.one(LIMIT, {"key_id": key_id, "requests_per_minute": requests_per_minute}))


async def end(session: Session, key_id: UUID, at: datetime) -> None:
    """Lets a key expire at this moment, unless it expires earlier."""
    await session.execute(END, {"key_id": key_id, "at": at})


def _stored_key(row: Row) -> StoredKey:
    return StoredKey(**{**row._asdict(), "scopes": tuple(row.scopes), "workspaces": _names(row)})


def _names(row: Row) -> tuple[str, ...] | None:
    return None if row.workspaces is None else tuple(row.workspaces)
