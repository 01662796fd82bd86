"""Resolves workspaces, and the keys that requests bring."""

import time
from dataclasses import replace

from app.errors import ConfigurationError, InvalidInput, NotFound, Unavailable
from app.foundation.db.database import Database
from app.foundation.values import frozen
from app.settings import PREFIX, Settings
from app.storage.tenants import keys, store
from app.storage.tenants.keys import Key, digest_of
from app.storage.tenants.workspace import (
    UNMADE,
    Workspace,
    check_language,
    checked_name,
    configuration,
    unknown_language,
)


def check_defaults(settings: Settings) -> None:
    """Checks the workspace and the language of calls that name none, before anything is started.

    Raises:
        ConfigurationError: a workspace cannot have the name, or there is no such language.
    """
    try:
        checked_name(settings.workspace)
    except InvalidInput as error:
        raise ConfigurationError(f"{PREFIX}WORKSPACE={settings.workspace!r} is refused: {error.message}") from None
    if reason := unknown_language(settings.language):
        raise ConfigurationError(f"{PREFIX}LANGUAGE: {reason}")


@frozen
class Workspaces:
    """Finds and makes workspaces."""

    database: Database
    language: str = "english"
    """That of a workspace that does not exist yet."""

    async def resolve(self, name: str) -> Workspace:
        """Returns the workspace of that name. A workspace that does not exist yet is empty, and is not made here.

        Raises:
            InvalidInput: the name is not valid.
        """
        checked_name(name)
        async with self.database.session(UNMADE, transaction=False) as session:
            found = await store.find(session, name)
        if found is not None:
            return found
        chosen = configuration(self.language)
        return Workspace(workspace_id=UNMADE, name=name, language=chosen, languages=(chosen,))

    async def resolve_id(self, workspace_id: int) -> Workspace:
        """Returns the workspace of that id, for a job.

        Raises:
            NotFound: no workspace has this id.
        """
        async with self.database.session(workspace_id, transaction=False) as session:
            found = await store.get(session)
        if found is None:
            raise NotFound(f"there is no workspace {workspace_id}")
        return found

    async def get_or_create(self, workspace: Workspace) -> Workspace:
        """Returns the workspace, after making it if it does not exist yet. Verbs that write call this first."""
        if workspace.workspace_id != UNMADE:
            return workspace
        async with self.database.session(UNMADE) as session:
            found = await store.make(session, workspace.name, workspace.language)
        return replace(found, user=workspace.user, sees=workspace.sees)

    async def set_language(self, workspace: Workspace, language: str) -> Workspace:
        """Sets the language of memories and queries that name none. Stored memories keep theirs.

        Returns the workspace with the text search configuration that was set: `simple` for a code that Postgres does
        not know.

        Raises:
            InvalidInput: the language is unknown.
        """
        check_language(language)
        chosen = configuration(language)
        workspace = await self.get_or_create(workspace)
        async with self.database.session(workspace) as session:
            await store.set_language(session, workspace, chosen)
        return replace(workspace, language=chosen)


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
                key = await keys.find(session, digest)
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
                    found = await keys.exist(session)
            except Unavailable:
                if found is None:
                    raise
            self._asked = (found, time.monotonic() + FRESH_SECONDS)
        return found

    def forget(self) -> None:
        """Forgets the keys, after one has changed in this process. A look-up that is under way is forgotten, too."""
        self._known = {}
        self._asked = (self._asked[0], 0.0)
