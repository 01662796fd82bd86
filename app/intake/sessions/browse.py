"""The verbs that show stored sessions, and delete one."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from uuid import UUID

from app.errors import InvalidInput, NotFound, check
from app.foundation.db.database import Database
from app.foundation.db.session import Session
from app.foundation.text.data import unstorable
from app.foundation.values import frozen
from app.intake.sessions import store
from app.intake.sessions.store import StoredMessage, StoredSession, TouchedArtifact
from app.intake.sessions.take_in import stored_id
from app.storage.memories import store as memories
from app.storage.memories.memory import DELETED
from app.storage.memories.service import check_limit
from app.storage.tenants.workspace import Workspace


@frozen
class SessionFilters:
    """Conditions on sessions, all of which must be met."""

    text: str | None = None
    """A part of the title or the id, in any case."""
    format: str | None = None
    path: str | None = None
    """A file that it created or changed: the whole path, or its end from a slash on."""
    since: datetime | None = None
    until: datetime | None = None


@frozen
class SessionDetail:
    """A session with its turns and what it touched."""

    session: StoredSession
    messages: tuple[StoredMessage, ...]
    artifacts: tuple[TouchedArtifact, ...]


_EVERY_SESSION = SessionFilters()


@frozen
class Sessions:
    """Shows stored sessions, and deletes one."""

    database: Database
    masked: bool = True
    """True if secrets are masked, in the ids of sessions too."""

    async def page(
        self,
        workspace: Workspace,
        *,
        filters: SessionFilters = _EVERY_SESSION,
        limit: int = 50,
        before: tuple[datetime, UUID] | None = None,
    ) -> Sequence[StoredSession]:
        """Returns the sessions that meet every condition, the latest first, after the place that `before` names.

        Raises:
            InvalidInput: the limit is out of range, or a text cannot be searched.
        """
        check_limit(limit)
        given = asdict(filters)
        check(unstorable(given))
        moment, source_id = before or (None, None)
        async with self.database.session(workspace, reading=True) as session:
            names = await store.names_of(session, filters.path) if filters.path else None
            values = {**given, "path": names, "moment": moment, "before": source_id}
            return await store.page(session, values, limit=limit)

    async def get(self, workspace: Workspace, session_id: str) -> SessionDetail:
        """Returns a session with its live turns.

        Raises:
            NotFound: the workspace has no such session.
        """
        async with self.database.session(workspace, reading=True) as session:
            found = await self._find(session, workspace, session_id)
            return SessionDetail(
                session=found,
                messages=tuple(await store.messages(session, found.source_id)),
                artifacts=tuple(await store.touched_artifacts(session, found.source_id)),
            )

    async def latest_turns(
        self, workspace: Workspace, session_id: str, *, count: int, before: int | None = None
    ) -> Sequence[StoredMessage]:
        """Returns the latest live turns of a session in their order, with `before` those before this place.

        Raises:
            NotFound: the workspace has no such session.
        """
        async with self.database.session(workspace, reading=True) as session:
            found = await self._find(session, workspace, session_id)
            return await store.messages(session, found.source_id, latest=count, before=before)

    async def turns_from(
        self, workspace: Workspace, session_id: str, *, start: int, count: int
    ) -> tuple[StoredSession, Sequence[StoredMessage]]:
        """Returns a session, and at most `count` of its live turns from the place `start` on.

        Raises:
            NotFound: the workspace has no such session.
        """
        async with self.database.session(workspace, reading=True) as session:
            found = await self._find(session, workspace, session_id)
            return found, await store.messages_from(session, found.source_id, start, limit=count)

    async def delete(self, workspace: Workspace, session_id: str) -> int:
        """Moves all turns of a session to the trash, and forgets its file; returns their number.

        A job retires its cues.

        Raises:
            NotFound: the workspace has no such session.
        """
        async with self.database.session(workspace) as session:
            found = await self._find(session, workspace, session_id)
            await store.lock(session, found.source_id)
            deleted = await memories.retire(session, await store.live_turns(session, found.source_id), reason=DELETED)
            await store.note_deleted(session, found.source_id)
            await store.ask_for_cues(session, found.session_id)
        return len(deleted)

    async def _find(self, session: Session, workspace: Workspace, session_id: str) -> StoredSession:
        try:
            found = await store.get(session, stored_id(session_id, masked=self.masked))
        except InvalidInput:
            found = None
        if found is None:
            raise NotFound(f"there is no session {session_id} in workspace {workspace.name}")
        return found
