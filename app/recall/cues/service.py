"""The verbs that show cues, merge them, and take them away and back."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from uuid import UUID

from app.errors import InvalidInput, NotFound, check
from app.foundation.db.database import Database
from app.recall.cues import store
from app.recall.cues.conflicts import supersede
from app.recall.cues.cue import ACTIVE, TAKEN_AWAY, Cue
from app.recall.cues.edit import restore_in, retire_in
from app.recall.cues.keep import cue_in
from app.recall.cues.store import CueFilter
from app.storage.memories.gate import unstorable
from app.storage.memories.memory import DELETED
from app.storage.memories.service import LARGEST_PAGE
from app.storage.tenants.workspace import Workspace

MOST_MERGED = 100
EVERY_CUE = CueFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cues:
    """Shows cues, merges them, and takes them away and back."""

    database: Database

    async def get(self, workspace: Workspace, cue_id: UUID) -> Cue:
        """Returns one cue, of any state.

        Raises:
            NotFound: the workspace has no such cue.
        """
        async with self.database.session(workspace, reading=True) as session:
            return await cue_in(session, workspace, cue_id)

    async def page(
        self,
        workspace: Workspace,
        *,
        asked: CueFilter = EVERY_CUE,
        after: tuple[datetime, UUID] | None = None,
        limit: int = 50,
    ) -> Sequence[Cue]:
        """Returns the cues that meet every condition, the newest first; `after` is the last one of the page before."""
        if not 1 <= limit <= LARGEST_PAGE:
            raise InvalidInput("limit", f"must be from 1 to {LARGEST_PAGE}")
        check(unstorable(asdict(asked)))
        async with self.database.session(workspace, reading=True) as session:
            return await store.page(session, asked, after=after, limit=limit)

    async def of_source(self, workspace: Workspace, source_id: UUID) -> Sequence[Cue]:
        """Returns the cues that have evidence in a source, the oldest first, without retired and superseded ones."""
        async with self.database.session(workspace, reading=True) as session:
            return [cue for cue in await store.of_source(session, source_id) if cue.state not in TAKEN_AWAY]

    async def retire(self, workspace: Workspace, cue_id: UUID) -> Cue:
        """Takes a cue away: it fires no more and is not found; it can be restored.

        Raises:
            NotFound: the workspace has no such cue.
        """
        async with self.database.session(workspace) as session:
            await cue_in(session, workspace, cue_id)
            await retire_in(session, [cue_id], reason=DELETED)
            return await cue_in(session, workspace, cue_id)

    async def restore(self, workspace: Workspace, cue_id: UUID) -> Cue:
        """Makes a retired, superseded or proposed cue active: the person who restores it stands behind it.

        Raises:
            NotFound: the workspace has no such cue.
            InvalidInput: another cue with its text is active.
        """
        async with self.database.session(workspace) as session:
            return await restore_in(session, workspace, cue_id, release=True)

    async def merge(self, workspace: Workspace, ids: Sequence[UUID], *, into: UUID) -> Cue:
        """Merges cues into one that says the same better: it gets their evidence, days, counts and confidence.

        The merged ones are superseded by it; restoring one makes it active again.

        Raises:
            InvalidInput: there are none or too many, one is the cue that they go into, or that cue is not active.
            NotFound: the workspace lacks one of them.
        """
        if not 1 <= len(ids) <= MOST_MERGED:
            raise InvalidInput("ids", f"1 to {MOST_MERGED} cues are merged at once")
        if into in ids:
            raise InvalidInput("into", "is one of the cues that go into it")
        async with self.database.session(workspace) as session:
            known = await store.read(session, [*ids, into])
            if missing := [str(cue_id) for cue_id in (*ids, into) if cue_id not in known]:
                raise NotFound(f"there is no cue {missing[0]} in workspace {workspace.name}")
            if known[into].state != ACTIVE:
                raise InvalidInput("into", f"is {known[into].state}; restore it first, or merge into an active cue")
            revision = await store.next_revision(session)
            await store.merge(session, ids, into, revision)
            await supersede(session, ids, into, datetime.now(UTC), revision)
            return await cue_in(session, workspace, into)
