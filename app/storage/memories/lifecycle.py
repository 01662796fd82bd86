"""The verbs that delete, restore, tag and review memories."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from app.errors import InvalidInput, NotFound, Refused, told_apart
from app.foundation.db.database import Database
from app.foundation.db.session import Session
from app.foundation.safety.secrets import masked_values
from app.foundation.text.faults import unstorable
from app.storage.index.indexing import index_memories
from app.storage.links import store as links
from app.storage.links.relations import Link
from app.storage.memories import changes, filters, store
from app.storage.memories.gate import INJECTION, instruction_in, tag_reasons
from app.storage.memories.memory import DELETED, QUARANTINED, SUPERSEDED, Memory
from app.storage.tenants.workspace import Workspace

MOST_AT_ONCE = 10_000
_TWIN_RETRIES = 3
_LOW_QUALITY = -2
"""A memory of at most this quality is a prune candidate, regardless of its score."""
_LOW_SCORE = 6.0
"""The score below which a memory with a negative quality is a prune candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneCandidate:
    """A memory with a low quality or score, and the reason."""

    memory: Memory
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewCounts:
    """The numbers of memories to review, by list."""

    prune_candidates: int = 0
    quarantined: int = 0
    suspect: int = 0
    deleted: int = 0
    superseded: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """The given ids, divided into changed and missing ones."""

    changed: tuple[UUID, ...]
    missing: tuple[UUID, ...]
    """Ids of memories that are not in the workspace, or not in a state that the verb changes."""


async def delete_memories(database: Database, *, workspace: Workspace, ids: Sequence[UUID]) -> Changed:
    """Moves memories to the trash, all in one transaction; they can be restored until the trash is emptied."""
    delete = partial(store.retire, ids=ids, reason=DELETED, over=(QUARANTINED, SUPERSEDED))
    return await _all_at_once(database, workspace, ids, delete)


async def delete_memory(database: Database, *, workspace: Workspace, memory_id: UUID) -> None:
    """Move one memory to the trash.

    Raises:
        NotFound: the workspace has no such memory outside the trash.
    """
    if (await delete_memories(database, workspace=workspace, ids=[memory_id])).missing:
        raise NotFound(f"there is no memory {memory_id} to delete in workspace {workspace.name}")


async def restore_memories(
    database: Database, *, workspace: Workspace, ids: Sequence[UUID], release: bool = True
) -> Changed:
    """Restores deleted, superseded or quarantined memories, and releases suspect ones, so that histories show them.

    A released memory is never quarantined again. A memory stays retired if another live memory has its identity. One
    that was deleted in quarantine goes back there.

    Raises:
        Forbidden: one is in quarantine or suspect, and the caller may not `release` it; nothing was restored.
    """
    restore = partial(_restore, ids=ids, release=release)
    for _ in range(_TWIN_RETRIES):
        # The next attempt sees the twin and leaves its memory retired.
        with suppress(changes.TwinLive):
            return await _all_at_once(database, workspace, ids, restore)
    return await _all_at_once(database, workspace, ids, restore)


async def supersede_memories(
    database: Database, *, workspace: Workspace, ids: Sequence[UUID], newer: UUID | None
) -> Changed:
    """Lets a live memory replace others, all in one transaction; they are linked with it.

    Without `newer`, the restoration of superseded memories is taken back: a live memory that replaced them is known by
    its link.

    Raises:
        InvalidInput: it would replace itself.
        NotFound: the workspace has no such live memory.
    """
    if newer in ids:
        raise InvalidInput("by", "is one of the memories that it would replace")

    async def supersede(session: Session) -> Sequence[UUID]:
        if newer is None:
            return await store.retire(session, await changes.replaced_memories(session, ids), reason=SUPERSEDED)
        if not await changes.is_live(session, newer):
            raise NotFound(f"there is no live memory {newer} in workspace {workspace.name}")
        found = await store.retire(session, ids, reason=SUPERSEDED)
        await links.add(session, [Link(newer, older, "supersedes") for older in found])
        return found

    return await _all_at_once(database, workspace, ids, supersede)


async def quarantine_memories(database: Database, *, workspace: Workspace, ids: Sequence[UUID]) -> Changed:
    """Takes back the release of memories, all in one transaction. Missing are those that nobody had released."""
    return await _all_at_once(database, workspace, ids, partial(changes.quarantine_again, ids=ids))


async def _restore(session: Session, ids: Sequence[UUID], *, release: bool) -> Sequence[UUID]:
    live, caught = await changes.restore(session, ids, release=release)
    if live:
        await index_memories(session, sorted(live))
    return (*live, *caught)


async def tag_memories(
    database: Database, *, workspace: Workspace, ids: Sequence[UUID], tag: str, mask: bool = True, remove: bool = False
) -> Changed:
    """Gives memories a tag, or `remove` it, all in one transaction.

    `missing` has the memories that had the tag already or have 64 tags; with `remove`, those that did not have it.

    Raises:
        InvalidInput: the tag is not valid, or there are too many memories.
        Refused: the tag looks like an instruction to the reader.
    """
    change = changes.UNTAG if remove else changes.TAG
    retag = partial(changes.retag, ids=ids, tag=_tag(tag, mask=mask, remove=remove), statement=change)
    return await _all_at_once(database, workspace, ids, retag)


async def _all_at_once(
    database: Database,
    workspace: Workspace,
    ids: Sequence[UUID],
    change: Callable[[Session], Awaitable[Sequence[UUID]]],
) -> Changed:
    """Changes memories in one transaction; returns the changed and the missing ids."""
    if not 1 <= len(ids) <= MOST_AT_ONCE:
        raise InvalidInput("ids", f"1 to {MOST_AT_ONCE:,} are taken at once")
    async with database.session(workspace) as session:
        done = set(await change(session))
    unique = tuple(dict.fromkeys(ids))
    return Changed(
        changed=tuple(memory_id for memory_id in unique if memory_id in done),
        missing=tuple(memory_id for memory_id in unique if memory_id not in done),
    )


def _tag(tag: str, *, mask: bool, remove: bool) -> str:
    """Returns the tag as it is stored, masked like the tags of a new memory."""
    for reason in (*tag_reasons((tag,)), *unstorable(tag, "tag")):
        raise InvalidInput("tag", told_apart(reason)[1])
    if not remove and (found := instruction_in(tag)):
        raise Refused("tag", f"looks like an instruction to the reader (rule {found.rule})", reason=INJECTION)
    return masked_values(tag) if mask else tag


async def retired_memories(
    database: Database, *, workspace: Workspace, reason: str, limit: int = 200, offset: int = 0
) -> Sequence[Memory]:
    """Returns memories that are retired for this reason, the latest first; quarantined ones with their findings."""
    async with database.session(workspace, reading=True) as session:
        return await filters.retired_as(session, reason, limit=limit, offset=offset)


async def suspects(database: Database, *, workspace: Workspace, limit: int = 200, offset: int = 0) -> Sequence[Memory]:
    """Returns live memories that the injection scan suspects, the newest first: no history shows them."""
    async with database.session(workspace, reading=True) as session:
        return await filters.suspects(session, limit=limit, offset=offset)


async def prune_candidates(
    database: Database, *, workspace: Workspace, limit: int = 200, offset: int = 0
) -> list[PruneCandidate]:
    """Returns memories of quality -2 or less, and rated-down ones below a score of 6; the worst first."""
    async with database.session(workspace, reading=True) as session:
        found = await filters.low(session, quality=_LOW_QUALITY, final_score=_LOW_SCORE, limit=limit, offset=offset)
    return [PruneCandidate(memory=memory, reason=_reason_to_prune(memory)) for memory in found]


def _reason_to_prune(memory: Memory) -> str:
    if memory.quality <= _LOW_QUALITY:
        return f"rated down to a quality of {memory.quality}"
    return f"its score is {memory.final_score:.1f}, below {_LOW_SCORE:g}, and its quality {memory.quality}, below 0"


async def review_counts(database: Database, *, workspace: Workspace) -> ReviewCounts:
    """Returns the numbers of memories that people should review."""
    async with database.session(workspace, reading=True) as session:
        return ReviewCounts(**await filters.count_to_review(session, quality=_LOW_QUALITY, final_score=_LOW_SCORE))
