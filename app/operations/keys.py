"""The verbs of API keys: make, list, limit, revoke and rotate."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from msgspec.structs import replace

from app.errors import Forbidden, InvalidInput, NotFound
from app.foundation.db.database import Database
from app.storage.memories.memory import new_id
from app.storage.tenants import keys
from app.storage.tenants.keys import (
    EVERYTHING,
    Key,
    MadeKey,
    NewKey,
    StoredKey,
    check_limit,
    check_new_key,
    digest_of,
    new_secret,
)

LONGEST_OVERLAP = timedelta(days=90)


async def make_key(database: Database, *, wanted: NewKey, by: Key = EVERYTHING) -> MadeKey:
    """Makes a key; its secret is shown this once. An end of its life without a time zone is in UTC.

    `by` is the key of whoever asks; nobody makes a key of workspaces that their own does not serve. A key that a key of
    some workspaces makes has the limits of its maker.

    Raises:
        InvalidInput: the name, a scope, a workspace or the date of expiry is not valid.
        Forbidden: the key would serve a workspace that the caller's does not, or the caller may not limit keys.
    """
    if wanted.expires_at is not None and wanted.expires_at.tzinfo is None:
        wanted = replace(wanted, expires_at=wanted.expires_at.replace(tzinfo=UTC))
    check_new_key(wanted)
    if not _covers(by, wanted.workspaces):
        raise Forbidden("this key may only make keys of its own workspaces")
    if wanted.requests_per_minute is not None:
        _may_limit(by)
    if by.workspaces is not None:
        wanted = replace(wanted, requests_per_minute=by.requests_per_minute)
    secret = new_secret()
    async with database.across() as session:
        return MadeKey(key=await keys.add(session, new_id(), digest_of(secret), wanted, replaces=None), secret=secret)


async def list_keys(database: Database, *, by: Key = EVERYTHING) -> Sequence[StoredKey]:
    """Returns the keys that `by` may manage, the newest first, those that are revoked or expired among them."""
    async with database.across() as session:
        return [key for key in await keys.all_of_them(session) if _covers(by, key.workspaces)]


async def revoke_key(database: Database, *, key_id: UUID, by: Key = EVERYTHING) -> StoredKey:
    """Revokes a key for good. Other processes refuse it within `known.FRESH_SECONDS`.

    Raises:
        NotFound: there is no such key that `by` may manage.
    """
    async with database.across() as session:
        _managed_key(await keys.lock_key(session, key_id), key_id, by)
        return await keys.revoke(session, key_id)


async def limit_key(
    database: Database, *, key_id: UUID, requests_per_minute: int | None, by: Key = EVERYTHING
) -> StoredKey:
    """Gives a key this limit of its use. Other processes keep to it within `known.FRESH_SECONDS`.

    Raises:
        InvalidInput: the limit is out of range.
        Forbidden: the caller may not limit keys.
        NotFound: there is no such key.
    """
    check_limit(requests_per_minute)
    _may_limit(by)
    async with database.across() as session:
        _managed_key(await keys.lock_key(session, key_id), key_id, by)
        return await keys.limit(session, key_id, requests_per_minute)


async def rotate_key(database: Database, *, key_id: UUID, overlap: timedelta, by: Key = EVERYTHING) -> MadeKey:
    """Makes a key of the same name, scopes, workspaces and limits; the old one stays valid for `overlap`.

    The new key lives as long as the old one was made for.

    Raises:
        NotFound: there is no such key that `by` may manage.
        InvalidInput: the key is revoked or expired, or the overlap is out of range.
    """
    if not timedelta(0) <= overlap <= LONGEST_OVERLAP:
        raise InvalidInput("overlap", f"must be from 0 to {LONGEST_OVERLAP.days} days")
    secret, now = new_secret(), datetime.now(UTC)
    async with database.across() as session:
        old = _managed_key(await keys.lock_key(session, key_id), key_id, by)
        if old.revoked_at is not None or (old.expires_at is not None and old.expires_at <= now):
            raise InvalidInput("key_id", "this key is revoked or expired; make a new one")
        life = None if old.expires_at is None else old.expires_at - old.created_at
        wanted = NewKey(
            name=old.name,
            scopes=old.scopes,
            workspaces=old.workspaces,
            expires_at=None if life is None else now + life,
            requests_per_minute=old.requests_per_minute,
        )
        made = await keys.add(session, new_id(), digest_of(secret), wanted, replaces=key_id)
        await keys.end(session, key_id, now + overlap)
    return MadeKey(key=made, secret=secret)


def _covers(by: Key, workspaces: Sequence[str] | None) -> bool:
    """Tells whether a key may manage another that serves these workspaces."""
    if by.workspaces is None:
        return True
    return workspaces is not None and all(by.serves(name) for name in workspaces)


def _may_limit(by: Key) -> None:
    if by.workspaces is not None:
        raise Forbidden("only a key of all workspaces sets limits: they protect the service that all share")


def _managed_key(key: StoredKey | None, key_id: UUID, by: Key) -> StoredKey:
    if key is None or not _covers(by, key.workspaces):
        raise NotFound(f"there is no key {key_id}")
    return key
