"""The verbs of access: keys, which say who may do what, and the audit log, which says who did it."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from app.errors import Forbidden, InvalidInput, NotFound, check
from app.foundation.db.audit import SIGNED, STORE, SWEEP
from app.foundation.db.database import Database
from app.foundation.db.session import Across, Row, Session
from app.foundation.text.data import unstorable
from app.foundation.values import frozen
from app.storage.index.indexing import NAME
from app.storage.memories.memory import first_id, in_utc, new_id
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
from app.storage.tenants.workspace import Workspace

LONGEST_OVERLAP = timedelta(days=90)


class ManagedKeys(NamedTuple):
    """Makes, lists, limits and revokes the keys that a key may manage."""

    database: Database
    by: Key = EVERYTHING
    """The key of whoever asks. Nobody makes or sees a key of workspaces that their own does not serve."""

    async def make(self, wanted: NewKey) -> MadeKey:
        """Makes a key; its secret is shown this once. An end of its life without a time zone is in UTC.

        A key that a key of some workspaces makes has the limits of its maker.

        Raises:
            InvalidInput: the name, a scope, a workspace or the date of expiry is not valid.
            Forbidden: the key would serve a workspace that the caller's does not, or the caller may not limit keys.
        """
        if wanted.expires_at is not None and wanted.expires_at.tzinfo is None:
            wanted = replace(wanted, expires_at=wanted.expires_at.replace(tzinfo=UTC))
        check_new_key(wanted)
        if not self._covers(wanted.workspaces):
            raise Forbidden("this key may only make keys of its own workspaces")
        if wanted.requests_per_minute is not None:
            self._check_may_limit()
        if self.by.workspaces is not None:
            wanted = replace(wanted, requests_per_minute=self.by.requests_per_minute)
        secret = new_secret()
        async with self.database.across() as session:
            made = await keys.add(session, new_id(), digest_of(secret), wanted, replaces=None)
        return MadeKey(key=made, secret=secret)

    async def list_all(self) -> Sequence[StoredKey]:
        """Returns the keys, the newest first, those that are revoked or expired among them."""
        async with self.database.across() as session:
            return [key for key in await keys.all_of_them(session) if self._covers(key.workspaces)]

    async def revoke(self, key_id: UUID) -> StoredKey:
        """Revokes a key for good. Other processes refuse it within `known.FRESH_SECONDS`.

        Raises:
            NotFound: there is no such key that `by` may manage.
        """
        async with self.database.across() as session:
            await self._lock(session, key_id)
            return await keys.revoke(session, key_id)

    async def limit(self, key_id: UUID, requests_per_minute: int | None) -> StoredKey:
        """Gives a key this limit of its use. Other processes keep to it within `known.FRESH_SECONDS`.

        Raises:
            InvalidInput: the limit is out of range.
            Forbidden: the caller may not limit keys.
            NotFound: there is no such key.
        """
        check_limit(requests_per_minute)
        self._check_may_limit()
        async with self.database.across() as session:
            await self._lock(session, key_id)
            return await keys.limit(session, key_id, requests_per_minute)

    async def rotate(self, key_id: UUID, *, overlap: timedelta) -> MadeKey:
        """Makes a key of the same name, scopes, workspaces and limits; the old one stays valid for `overlap`.

        The new key lives as long as the old one was made for.

        Raises:
            NotFound: there is no such key that `by` may manage.
            InvalidInput: the key is revoked or expired.
        """
        secret, now = new_secret(), datetime.now(UTC)
        async with self.database.across() as session:
            old = await self._lock(session, key_id)
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

    def _covers(self, workspaces: Sequence[str] | None) -> bool:
        """Tells whether the caller may manage a key that serves these workspaces."""
        if self.by.workspaces is None:
            return True
        return workspaces is not None and all(map(self.by.serves, workspaces))

    def _check_may_limit(self) -> None:
        if self.by.workspaces is not None:
            raise Forbidden("only a key of all workspaces sets limits: they protect the service that all share")

    async def _lock(self, session: Session, key_id: UUID) -> StoredKey:
        key = await keys.lock_key(session, key_id)
        if key is None or not self._covers(key.workspaces):
            raise NotFound(f"there is no key {key_id}")
        return key


LARGEST_PAGE = 1_000
# Ids sort by time, so that a span of time is a range of the primary key.
_PAGE = """
SELECT entry_id, at, who, operation, request_id, key_id, for_user AS "user", action, object, count, ids,
    coalesce(encode(ids_hash, 'hex'), '') AS ids_hash
FROM audit WHERE workspace_id = %(workspace_id)s
    AND (%(first)s::uuid IS NULL OR entry_id >= %(first)s) AND (%(end)s::uuid IS NULL OR entry_id < %(end)s)
    AND (%(before)s::uuid IS NULL OR entry_id < %(before)s)
    AND (%(who)s = '' OR who = %(who)s OR starts_with(who, %(who)s || %(signed)s))
    AND (%(named)s = '' OR %(named)s = ANY(ids) OR strpos(lower(who), lower(%(named)s)) > 0
        OR ids && %(saying)s::text[])
    AND %(action)s IN ('', action) AND %(object)s IN ('', object)
ORDER BY entry_id DESC LIMIT %(limit)s
"""
_SAYING = """
SELECT memory_id::text FROM memories WHERE workspace_id = %(workspace_id)s
    AND (SELECT bool_and(strpos(lower(title || ' ' || body), word) > 0) FROM unnest(%(words)s::text[]) AS word)
ORDER BY memory_id DESC LIMIT 1000
"""
"""The newest memories that have all words, as many as the largest page has entries."""
_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_TITLED = 10
"""Memories of an entry whose titles are read."""
_TITLES = f"""
SELECT memory_id::text, {NAME} AS title FROM memories m
WHERE workspace_id = %(workspace_id)s AND memory_id = ANY(%(ids)s::uuid[])
"""  # noqa: S608 - constants
_OF_MEMORIES = frozenset({"memory", "observation", "cue"})
"""Objects that have the ids of memories."""


class AuditEntry(Struct, frozen=True, kw_only=True, rename={"entry_id": "id"}):
    """A change to objects of one kind, by one statement, or an export of them."""

    entry_id: UUID
    at: datetime
    who: str
    """`key NAME`, `token SUBJECT`, `panel`, `anyone`, `cli`, `worker`; `service` for what a process does by itself.
    ` · ` and the name of a reviewer follow where the panel asks."""
    operation: str
    """The route, the command, the tool or the job."""
    request_id: str
    """The request's `X-Request-ID`, or the id of a worker's job; empty for a command."""
    key_id: UUID | None
    """The stored key of the request."""
    user: str
    """The user whose objects they are; empty for nobody's and for those of several users."""
    action: str
    """`add`, `change`, `remove`, `export` or `erase`."""
    object: str
    """`memory`, `source`, `run`, `rating`, …"""
    count: int
    ids: tuple[str, ...]
    """The objects, if they are at most 10,000. Those that have the text which is asked for come first."""
    titles: tuple[str, ...] = ()
    """The titles of the first ten memories, or the beginning of their text; empty for one that is no longer stored."""
    ids_hash: str
    """The SHA-256 of the sorted ids, one a line, in hexadecimal digits; empty where they are not known."""


@frozen
class AuditQuestion:
    """The entries that are asked for."""

    since: datetime | None = None
    until: datetime | None = None
    who: str = ""
    action: str = ""
    object: str = ""
    named: str = ""
    """The id of an object that the entries name, words of a memory that they name, or a part of `who`."""
    before: UUID | None = None
    """The last entry of the page before."""
    limit: int = 100


async def sweep_entries(across: Across, *, days: int) -> int:
    """Destroys entries that are older than `days`, unless these are 0; returns their number."""
    if not days:
        return 0
    async with across() as session:
        return await session.execute(SWEEP, {"days": days})


def _with_titles(entry: AuditEntry, titles: Mapping[str, str]) -> AuditEntry:
    if entry.object not in _OF_MEMORIES:
        return entry
    return replace(entry, titles=tuple(titles.get(one, "") for one in entry.ids[:_TITLED]))


def _entry(row: Row, saying: Collection[str]) -> AuditEntry:
    ids = tuple(sorted(row.ids, key=lambda one: one not in saying))
    return AuditEntry(**{**row._asdict(), "ids": ids})


@frozen
class AuditLog:
    """Shows who changed and exported what."""

    database: Database

    async def entries(self, workspace: Workspace | None, asked: AuditQuestion) -> Sequence[AuditEntry]:
        """Returns entries of a workspace, the newest first; without one, those that concern the whole store.

        Raises:
            InvalidInput: a moment is outside the years 1 to 9999 in UTC.
        """
        check(unstorable({"since": asked.since, "until": asked.until}))
        values = {
            **asdict(asked),
            "signed": SIGNED,
            "first": None if asked.since is None else first_id(in_utc(asked.since)),
            "end": None if asked.until is None else first_id(in_utc(asked.until)),
        }
        place = STORE if workspace is None else workspace.of_everyone()
        async with self.database.session(place, transaction=False) as session:
            words = asked.named.lower().split()
            if len(words) == 1 and _ID.fullmatch(words[0]):
                words = []  # an id names its object exactly
            values["saying"] = await session.column(_SAYING, {"words": words}) if words else []
            rows = await session.rows(_PAGE, values)
            entries = [_entry(row, frozenset(values["saying"])) for row in rows]
            shown = [one for entry in entries if entry.object in _OF_MEMORIES for one in entry.ids[:_TITLED]]
            titles = {row.memory_id: row.title for row in await session.rows(_TITLES, {"ids": shown})} if shown else {}
        return [_with_titles(entry, titles) for entry in entries]
