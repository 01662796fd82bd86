"""The verbs of upkeep across all workspaces, for commands and the service's start; the users of a workspace."""

from collections import Counter
from collections.abc import Mapping, Sequence
from uuid import UUID

from app.errors import InvalidInput, NotFound
from app.foundation.db import whole
from app.foundation.db.database import Database, again_after_deadlock
from app.foundation.db.session import Across, Session
from app.foundation.values import frozen
from app.insight.map import store as maps
from app.intake.runs import store as runs
from app.intake.runs.feedback import store as feedback
from app.intake.sessions import store as sessions
from app.recall.context import store as contexts
from app.recall.cues import log as activations
from app.recall.cues.review import store as proposals
from app.storage.index.indexing import enqueue_statistics
from app.storage.memories import changes, sources
from app.storage.memories import store as memories
from app.storage.recalls import store as recalls
from app.storage.tenants import store as workspaces
from app.storage.tenants.workspace import UNMADE, Workspace, checked_user


async def empty_trash(across: Across, *, days: int) -> int:
    """Destroys memories that were deleted longer ago than `days`, with their ratings; returns their number.

    Chunks and turns that others replaced so long ago go, too, with their links.
    Contexts that are older go too: what shows a destroyed memory was made before it was deleted.
    """
    async with across() as session:
        destroyed, blanked = await changes.destroy_expired_of_all(session, days=days)
        await feedback.forget_of_all(session, blanked)
        await sessions.blank_of_all(session, blanked)
        await contexts.forget_old_of_all(session, days=days)
    return destroyed


@frozen
class User:
    """A user of a workspace, with the numbers of what is theirs."""

    name: str
    memories: int
    """Number of live memories, turns and cues among them."""
    turns: int
    cues: int
    sessions: int
    recalls: int


@frozen
class ForgottenUser:
    """The numbers of what was a user's and is destroyed."""

    memories: int = 0
    """Number of memories, those in the trash, turns and cues among them."""
    turns: int = 0
    cues: int = 0
    sessions: int = 0
    ratings: int = 0
    runs: int = 0
    recalls: int = 0
    activations: int = 0
    contexts: int = 0


async def _forget_rows_of(session: Session, user: str) -> ForgottenUser:
    ratings = await feedback.count_of_user(session, user)
    gone = await memories.forget_user(session, user)
    kinds, of_sources = Counter(gone.values()), Counter(await sources.forget_user(session, user))
    await forget_traces(session, list(gone))
    await proposals.forget_user(session, user)
    await maps.forget_user(session, user)
    return ForgottenUser(
        memories=len(gone),
        turns=kinds["message"],
        cues=kinds["cue"],
        sessions=of_sources["session"],
        ratings=ratings,
        runs=await runs.forget_user(session, user),
        recalls=await recalls.forget_user(session, user),
        activations=await activations.forget_user(session, user),
        contexts=await contexts.forget_user(session, user),
    )


async def forget_traces(session: Session, destroyed: Sequence[UUID]) -> None:
    """Removes what was made of destroyed memories: artifacts, maps and, by a job, the counts of their words."""
    await sessions.forget_untouched(session)
    await maps.forget_shown(session, destroyed)
    await enqueue_statistics(session)


@frozen
class Maintenance:
    """Counts accesses; lists users; destroys users and workspaces."""

    database: Database

    async def count_accesses(self, across: Across) -> int:
        """Counts the recalls of all workspaces that are not counted yet among the accesses of the memories that they
        gave.

        Each recall is counted once, however many workers count and wherever one of them is killed: it is marked in the
        transaction that counts it. Returns the number of transactions.
        """
        async with across() as session:
            waiting = await recalls.uncounted_of_all(session)
        done = 0
        for workspace_id in waiting:

            async def attempt(workspace_id: int = workspace_id) -> bool:
                async with self.database.session(workspace_id) as session:
                    recalled = await recalls.take_uncounted(session)
                    await memories.add_accesses(session, recalled or ())
                return recalled is not None

            while await again_after_deadlock(attempt):
                done += 1
        return done

    async def list_users(self, workspace: Workspace, *, after: str = "", limit: int = 100) -> Sequence[User]:
        """Returns the users of a workspace by name, those after `after`."""
        async with self.database.session(workspace, transaction=False) as session:
            return [User(**row._asdict()) for row in await workspaces.users(session, after=after, limit=limit)]

    async def forget_user(self, workspace: Workspace, user: str) -> ForgottenUser:
        """Destroys everything that is a user's, at once and for good: there is no trash for it.

        A call that was broken off is to be repeated; the second one finishes the work of the first.

        Raises:
            InvalidInput: nobody can have this name.
        """
        if not checked_user(user):
            raise InvalidInput("user", "is empty; what belongs to nobody is not deleted with a user")
        if workspace.workspace_id == UNMADE:
            return ForgottenUser()
        async with self.database.session(workspace.of(user)) as session:
            named = await whole.audited_keys(session)
        # Before the rows: a later call could not find their names any more. The removal of the rows is logged in turn.
        async with self.database.across() as session:
            await whole.erase_entries_of(session, workspace.workspace_id, user, named)
        async with self.database.session(workspace.of(user)) as session:
            found = await _forget_rows_of(session, user)
        async with self.database.across() as session:
            await whole.erase_entries_of(session, workspace.workspace_id, user, named)
            session.changes.note_erasure("user", user, workspace.workspace_id)
        return found

    async def erase_workspace(self, workspace: Workspace) -> Mapping[str, int]:
        """Destroys a workspace with everything in it, its log and its jobs too; returns the numbers of rows by table.

        Raises:
            NotFound: nothing was ever written to it.
        """
        if workspace.workspace_id == UNMADE:
            raise NotFound(f"nothing was ever written to the workspace {workspace.name}")
        async with self.database.across() as session:
            return await whole.destroy(session, workspace.workspace_id, workspace.name)
