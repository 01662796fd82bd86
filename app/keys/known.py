"""The keys of requests, as a process has found them lately."""

import time
from contextlib import suppress

from app.db.database import Database
from app.errors import DatabaseUnavailable
from app.keys import store
from app.keys.key import Key, digest_of
from app.workspaces.workspace import UNMADE

FRESH_SECONDS = 5.0
"""Time for which a process trusts what it has found: a revoked key is refused after it at the latest."""
MOST_KNOWN = 1_000
"""Digests that a process remembers; beyond them, the oldest are asked for again."""


class KnownKeys:
    """Finds the keys of requests, and remembers them for a moment: most requests ask the database nothing."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[bytes, tuple[Key | None, float]] = {}
        self._asked: tuple[bool, float] = (False, 0.0)

    async def find(self, secret: bytes) -> Key | None:
        """Returns the key with this secret, if it is neither revoked nor expired.

        Raises:
            DatabaseUnavailable: the database does not answer, and the key is not remembered.
        """
        digest, now = digest_of(secret), time.monotonic()
        key, until = self._known.get(digest, (None, 0.0))
        if now >= until:
            async with self._database.session(UNMADE, transaction=False) as session:
                key = await store.find(session, digest)
            self._known.pop(digest, None)
            self._known[digest] = (key, now + FRESH_SECONDS)
            while len(self._known) > MOST_KNOWN:
                del self._known[next(iter(self._known))]
        return key

    async def exist(self) -> bool:
        """Tells whether there is a valid key. While the database does not answer, the last answer holds."""
        found, until = self._asked
        if time.monotonic() >= until:
            with suppress(DatabaseUnavailable):
                async with self._database.session(UNMADE, transaction=False) as session:
                    found = await store.exist(session)
            self._asked = (found, time.monotonic() + FRESH_SECONDS)
        return found

    def forget(self) -> None:
        """Forgets everything, after a key of this process' own database has changed."""
        self._known.clear()
        self._asked = (False, 0.0)
