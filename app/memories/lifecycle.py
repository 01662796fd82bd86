"""The verbs by which people take memories out, bring them back and tag them."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.engine import Database
from app.errors import InvalidInput, told_apart
from app.index.indexing import make_findable
from app.memories import reads as shown
from app.memories import store
from app.memories.admission import TAGS_LIMIT, tag_reasons, unstorable
from app.memories.memory import Memory
from app.memories.store import DELETED, QUARANTINED
from app.safety.secrets import masked
from app.workspaces import store as workspaces
from app.workspaces.workspace import checked_name

MOST_AT_ONCE = 10_000
TWIN_RETRIES = 3
LOW_QUALITY = -2
"""At or below it a memory is a prune candidate whatever its score,"""
LOW_SCORE = 6.0
"""and below it as soon as ratings speak against it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneCandidate:
    """A memory that people and scores speak against."""

    memory: Memory
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewCounts:
    """How many memories there are to review."""

    prune_candidates: int = 0
    quarantined: int = 0
    deleted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """What became of memories that were named."""

    changed: tuple[UUID, ...]
    missing: tuple[UUID, ...]
    """Not in the workspace, or not in the state from which this leads."""


async def delete_memories(database: Database, *, workspace: str, ids: Sequence[UUID]) -> Changed:
    """Take memories out of every answer, all in one transaction; they can be restored until the trash is emptied."""

    async def delete(connection: AsyncConnection, workspace_id: int) -> Sequence[UUID]:
        found = await store.lock_deletable(connection, workspace_id, ids)
        await store.mark_retired(connection, workspace_id, found, reason=DELETED)
        return found

    return await _all_at_once(database, workspace, ids, delete)


async def restore_memories(database: Database, *, workspace: str, ids: Sequence[UUID]) -> Changed:
    """Bring back what was deleted, superseded or quarantined; a released memory is never quarantined again.

    One whose text is live elsewhere stays where it is, and what was deleted in quarantine comes back to it.
    """
    for _ in range(TWIN_RETRIES):
        try:
            return await _restored(database, workspace, ids)
        except IntegrityError:
            # A twin of one of them came to life in this moment: on another look it is found.
            continue
    return await _restored(database, workspace, ids)


async def _restored(database: Database, workspace: str, ids: Sequence[UUID]) -> Changed:
    async def restore(connection: AsyncConnection, workspace_id: int) -> Sequence[UUID]:
        live, caught = await store.restore(connection, workspace_id, ids)
        if live:
            await make_findable(connection, workspace_id, sorted(live))
        return (*live, *caught)

    return await _all_at_once(database, workspace, ids, restore)


async def tag_memories(
    database: Database, *, workspace: str, ids: Sequence[UUID], tag: str, mask: bool = True
) -> Changed:
    """Give memories a tag, all in one transaction. Missing are those that had it, and those with 64 tags.

    Raises:
        InvalidInput: a tag that none can have, or too many memories at once.
    """
    wanted = _tag(tag, mask=mask)
    return await _all_at_once(database, workspace, ids, partial(store.tag, ids=ids, tag=wanted, most=TAGS_LIMIT))


async def untag_memories(
    database: Database, *, workspace: str, ids: Sequence[UUID], tag: str, mask: bool = True
) -> Changed:
    """Take a tag from memories, all in one transaction. Missing are those that did not have it.

    Raises:
        InvalidInput: a tag that none can have, or too many memories at once.
    """
    wanted = _tag(tag, mask=mask)
    return await _all_at_once(database, workspace, ids, partial(store.untag, ids=ids, tag=wanted))


async def _all_at_once(
    database: Database,
    workspace: str,
    ids: Sequence[UUID],
    change: Callable[[AsyncConnection, int], Awaitable[Sequence[UUID]]],
) -> Changed:
    """What one transaction changed of the memories that were named."""
    if not 1 <= len(ids) <= MOST_AT_ONCE:
        raise InvalidInput("ids", f"1 to {MOST_AT_ONCE:,} are taken at once")
    checked_name(workspace)
    async with database.transaction() as connection:
        target = await workspaces.find(connection, workspace)
        found = () if target is None else await change(connection, target.workspace_id)
    return _changed(ids, found)


def _tag(tag: str, *, mask: bool) -> str:
    """The tag as it is stored: masked as those are that come with a memory."""
    for reason in (*tag_reasons((tag,)), *unstorable(tag, "tag")):
        raise InvalidInput("tag", told_apart(reason)[1])
    return masked(tag) if mask else tag


async def quarantined(database: Database, *, workspace: str, limit: int = 200) -> Sequence[Memory]:
    """Memories that the injection scan took out, newest first, each with its findings."""
    return await _retired(database, workspace, QUARANTINED, limit)


async def deleted(database: Database, *, workspace: str, limit: int = 200) -> Sequence[Memory]:
    """Memories in the trash, newest first."""
    return await _retired(database, workspace, DELETED, limit)


async def _retired(database: Database, workspace: str, reason: str, limit: int) -> Sequence[Memory]:
    async with database.statements() as connection:
        target = await workspaces.find(connection, checked_name(workspace))
        return [] if target is None else await shown.retired_as(connection, target.workspace_id, reason, limit)


async def prune_candidates(database: Database, *, workspace: str, limit: int = 200) -> list[PruneCandidate]:
    """Memories of quality -2 or less, and those below a score of 6 with ratings against them; the worst first."""
    async with database.statements() as connection:
        target = await workspaces.find(connection, checked_name(workspace))
        if target is None:
            return []
        found = await shown.low(
            connection, target.workspace_id, quality=LOW_QUALITY, final_score=LOW_SCORE, limit=limit
        )
    return [PruneCandidate(memory=memory, reason=_why(memory)) for memory in found]


async def review_counts(database: Database, *, workspace: str) -> ReviewCounts:
    """How many memories wait for somebody to look at them."""
    async with database.statements() as connection:
        target = await workspaces.find(connection, checked_name(workspace))
        if target is None:
            return ReviewCounts()
        known = target.workspace_id
        return ReviewCounts(
            prune_candidates=await shown.count_low(connection, known, quality=LOW_QUALITY, final_score=LOW_SCORE),
            quarantined=await shown.count_retired_as(connection, known, QUARANTINED),
            deleted=await shown.count_retired_as(connection, known, DELETED),
        )


def _why(memory: Memory) -> str:
    if memory.quality <= LOW_QUALITY:
        return f"rated down to a quality of {memory.quality}"
    return f"its score is {memory.final_score:.1f}, below {LOW_SCORE:g}, and its quality {memory.quality}, below 0"


async def empty_trash(database: Database, *, days: int) -> int:
    """Destroy what was deleted longer ago than `days`. How many memories."""
    async with database.transaction() as connection:
        return await store.empty_trash(connection, days)


def _changed(ids: Sequence[UUID], found: Sequence[UUID]) -> Changed:
    done = set(found)
    unique = tuple(dict.fromkeys(ids))
    return Changed(
        changed=tuple(memory_id for memory_id in unique if memory_id in done),
        missing=tuple(memory_id for memory_id in unique if memory_id not in done),
    )
