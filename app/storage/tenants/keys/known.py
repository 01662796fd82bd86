"""The keys of requests, as a process has found them lately."""

import time

from app.errors import Unavailable
from app.foundation.db.database import Database
from app.storage.tenants.keys import store
from app.storage.tenants.keys.key import Key, digest_of
from app.storage.tenants.workspace import UNMADE

FRESH_SECONDS = 5.0
"""Time for which a process trusts what it has found: a revoked key is refused after it at the latest."""
_MOST_KNOWN = 1_000
"""Digests that a process remembers; beyond them, the oldest are asked for again."""


class KnownKeys:
    """Finds the keys of requests, and remembers them for a moment: most requests ask the database nothing."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[bytes, tuple[Key | None, float]] = {}
        self._asked: tuple[bool | None, float] = (None, 0.0)

    async def find(self, secret: bytes) -> Key | None:
        """Returns the key with this secret, if it is neither revoked nor expired.

        Raises:
            Unavailable: the database does not answer, and the key is not remembered.
        """
        digest, now, known = digest_of(secret), time.monotonic(), self._known
        key, until = known.get(digest, (None, 0.0))
        if now >= until:
            async with self._database.session(UNMADE, transaction=False) as session:
                key = await store.find(session, digest)
            known.pop(digest, None)
            known[digest] = (key, now + FRESH_SECONDS)
            while len(known) > _MOST_KNOWN:
                del known[next(iter(known))]
        return key

    async def exist(self) -> bool:
        """Tells whether there is a key that is not revoked. While the database does not answer, the last answer holds.

        Raises:
            Unavailable: the database does not answer, and it has never answered this before.
        """
        found, until = self._asked
        if found is None or time.monotonic() >= until:
            try:
                async with self._database.session(UNMADE, transaction=False) as session:
                    found = await store.exist(session)
            except Unavailable:
                if found is None:
                    raise
            self._asked = (found, time.monotonic() + FRESH_SECONDS)
        return found

    def forget(self) -> None:
        """Forgets the keys, after one has changed in this process. A look-up that is under way is forgotten, too."""
        self._known = {}
        self._asked = (self._asked[0], 0.0)
