"""The verbs that show stored memories and their sources, and that delete, restore, tag and review them."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from functools import partial
from typing import Literal, TypeAlias
from uuid import UUID

from msgspec import Struct

from app.errors import InvalidInput, NotFound, Refused, told_apart
from app.foundation.db.database import Database
from app.foundation.db.session import Session
from app.foundation.safety.secrets import masked_values
from app.foundation.text.data import unstorable
from app.foundation.values import frozen
from app.storage.index.indexing import index_memories
from app.storage.links import store as links
from app.storage.links.relations import Link, Linked
from app.storage.memories import changes, sources, store
from app.storage.memories.filters import (
    LOW_QUALITY,
    LOW_SCORE,
    Facet,
    Filters,
    State,
    check,
    conditions_of_list,
    count,
    count_to_review,
    facets,
    neighbours,
    page,
)
from app.storage.memories.gate import INJECTION, instruction_in, tag_reasons
from app.storage.memories.memory import DELETED, QUARANTINED, SOURCE_KINDS, SUPERSEDED, Memory, Source
from app.storage.tenants.workspace import Workspace

LARGEST_PAGE = 200

NEIGHBOURHOOD = 2
"""Distance of the farthest neighbours that are shown, in ordinals; retrieval boosts neighbours up to the same
distance."""
_MOST_NEIGHBOURS = 20
_MOST_LINKED = 200

Place: TypeAlias = tuple[datetime, UUID]
"""The end of a page: the creation time and id of its last item."""
Sort: TypeAlias = Literal["created", "occurred", "score", "quality", "retired", "worst"]
Order: TypeAlias = tuple[Sort, Literal["desc", "asc"]]
NEWEST: Order = ("created", "desc")
_EVERYTHING = Filters()


@frozen
class Page:
    """A page of the memories that meet the conditions."""

    memories: tuple[Memory, ...]
    end: tuple[datetime | float, UUID] | None
    """The last memory's value in the order, and its id; None on the last page."""
    total: int | None
    """The number of memories on all pages, counted up to 10,001; None if it was not asked for."""


def check_limit(limit: int) -> None:
    """Raises InvalidInput if a page cannot have so many items."""
    if not 1 <= limit <= LARGEST_PAGE:
        raise InvalidInput("limit", f"must be from 1 to {LARGEST_PAGE}")


_MOST_VALUES = 200
"""Most values of each facet; nobody chooses from more."""


class Facets(Struct, frozen=True, kw_only=True):
    """The values of the newest 100,000 live memories to filter by, each with its count, the most frequent first."""

    kinds: Sequence[Facet] = ()
    task_types: Sequence[Facet] = ()
    verdicts: Sequence[Facet] = ()
    tags: Sequence[Facet] = ()


MOST_AT_ONCE = 10_000
_TWIN_RETRIES = 3


@frozen
class ReviewCounts:
    """The numbers of memories to review, by state."""

    prune: int = 0
    quarantined: int = 0
    suspect: int = 0
    deleted: int = 0
    superseded: int = 0


@frozen
class Changed:
    """The given ids, divided into changed and missing ones."""

    changed: tuple[UUID, ...]
    missing: tuple[UUID, ...]
    """Ids of memories that are not in the workspace, or not in a state that the verb changes."""


async def _restore(session: Session, ids: Sequence[UUID], *, release: bool) -> Sequence[UUID]:
    live, caught = await changes.restore(session, ids, release=release)
    if live:
        await index_memories(session, sorted(live))
    return (*live, *caught)


def _tag(tag: str, *, mask: bool, remove: bool) -> str:
    """Returns the tag as it is stored, masked like the tags of a new memory."""
    for reason in (*tag_reasons((tag,)), *unstorable(tag, "tag")):
        raise InvalidInput("untag" if remove else "tag", told_apart(reason)[1])
    if not remove and (found := instruction_in(tag)):
        raise Refused("tag", f"looks like an instruction to the reader (rule {found.rule})", reason=INJECTION)
    return masked_values(tag) if mask else tag


def reason_to_prune(memory: Memory) -> str:
    """Returns the reason why a memory is among those to prune."""
    if memory.quality <= LOW_QUALITY:
        return f"rated down to a quality of {memory.quality}"
    return f"its score is {memory.final_score:.1f}, below {LOW_SCORE:g}, and its quality {memory.quality}, below 0"


@frozen
class Memories:
    """Shows stored memories and their sources; deletes, restores, tags and reviews them."""

    database: Database

    async def get(self, workspace: Workspace, *, memory_id: UUID) -> Memory:
        """Returns one memory, live or retired.

        Raises:
            NotFound: the workspace has no such memory.
        """
        async with self.open(workspace, memory_id) as (_, memory):
            return memory

    @asynccontextmanager
    async def open(self, workspace: Workspace, memory_id: UUID) -> AsyncIterator[tuple[Session, Memory]]:
        """Opens a session; yields it and a memory, live or retired.

        Raises:
            NotFound: the workspace has no such memory.
        """
        async with self.database.session(workspace, reading=True) as session:
            found = await store.get(session, memory_id)
            if found is None:
                raise NotFound(f"there is no memory {memory_id} in workspace {workspace.name}")
            yield session, found

    async def list_live(
        self,
        workspace: Workspace,
        *,
        filters: Filters = _EVERYTHING,
        source_id: UUID | None = None,
        limit: int = 50,
        before: Place | None = None,
    ) -> Sequence[Memory]:
        """Returns live memories, newest first, after the place that `before` names.

        Raises:
            InvalidInput: a condition that cannot be met, or a limit out of range.
        """
        found = await self.page(
            workspace, filters=filters, source_id=source_id, limit=limit, after=before, counted=False
        )
        return list(found.memories)

    async def page(
        self,
        workspace: Workspace,
        *,
        filters: Filters = _EVERYTHING,
        source_id: UUID | None = None,
        state: State = "live",
        order: Order = NEWEST,
        limit: int = 50,
        after: tuple[datetime | float, UUID] | None = None,
        counted: bool = True,
    ) -> Page:
        """Returns memories of a state in an order, after the place that `after` names.

        Raises:
            InvalidInput: a condition that cannot be met, or a limit out of range.
        """
        check_limit(limit)
        check(filters, within="")
        async with self.database.session(workspace, reading=True) as session:
            met = await conditions_of_list(session, filters, source_id, state)
            found = await page(session, met, order=order, after=after, limit=limit)
            total = await count(session, met) if counted else None
        end = (found[-1][1], found[-1][0].memory_id) if len(found) == limit else None
        return Page(memories=tuple(memory for memory, _ in found), end=end, total=total)

    async def neighbours(self, workspace: Workspace, *, memory_id: UUID) -> Sequence[Memory]:
        """Returns the live memories up to two places before and after one in its source, in their order.

        Raises:
            NotFound: the workspace has no such memory.
        """
        async with self.open(workspace, memory_id) as (session, _):
            return (await neighbours(session, [memory_id], distance=NEIGHBOURHOOD, limit=_MOST_NEIGHBOURS))[memory_id]

    async def surroundings(
        self, workspace: Workspace, *, ids: Sequence[UUID], distance: int
    ) -> Mapping[UUID, Sequence[Memory]]:
        """Returns, for each of these memories, the live ones up to `distance` places away from it in its source."""
        if not ids or not distance:
            return dict.fromkeys(ids, ())
        async with self.database.session(workspace, reading=True) as session:
            return await neighbours(session, ids, distance=distance, limit=_MOST_NEIGHBOURS)

    async def links_of(self, workspace: Workspace, *, memory_id: UUID) -> Sequence[Linked]:
        """Returns the live memories that a memory is linked with, at most _MOST_LINKED.

        The memories before and after it in its source come first (`next`), then given links, then found ones.

        Raises:
            NotFound: the workspace has no such memory.
        """
        async with self.open(workspace, memory_id) as (session, _):
            return await links.links_of(session, memory_id, _MOST_LINKED)

    async def list_sources(
        self, workspace: Workspace, *, kind: str | None = None, limit: int = 50, before: Place | None = None
    ) -> Sequence[Source]:
        """Returns sources, retired ones included, newest first, after the place that `before` names.

        Raises:
            InvalidInput: the kind is unknown, or the limit is out of range.
        """
        check_limit(limit)
        if kind is not None and kind not in SOURCE_KINDS:
            raise InvalidInput("kind", f"{kind!r} is not a kind of source; there are {', '.join(SOURCE_KINDS)}")
        async with self.database.session(workspace, reading=True) as session:
            return await sources.page(session, kind=kind, limit=limit, before=before)

    async def facets(self, workspace: Workspace) -> Facets:
        """Returns the values to filter by, with their counts."""
        async with self.database.session(workspace, reading=True) as session:
            return Facets(**await facets(session, limit=_MOST_VALUES))

    async def delete(self, workspace: Workspace, *, ids: Sequence[UUID]) -> Changed:
        """Moves memories to the trash, all in one transaction; they can be restored until the trash is emptied."""
        delete = partial(store.retire, ids=ids, reason=DELETED, over=(QUARANTINED, SUPERSEDED))
        return await self._all_at_once(workspace, ids, delete)

    async def restore(self, workspace: Workspace, *, ids: Sequence[UUID], release: bool = True) -> Changed:
        """Restores deleted, superseded or quarantined memories, and releases suspect ones, so that histories show them.

        A released memory is never quarantined again. A memory stays retired if another live memory has its identity.
        One that was deleted in quarantine goes back there.

        Raises:
            Forbidden: one is in quarantine or suspect, and the caller may not `release` it; nothing was restored.
        """
        restore = partial(_restore, ids=ids, release=release)
        for _ in range(_TWIN_RETRIES):
            # The next attempt sees the twin and leaves its memory retired.
            with suppress(changes.TwinLive):
                return await self._all_at_once(workspace, ids, restore)
        return await self._all_at_once(workspace, ids, restore)

    async def supersede(self, workspace: Workspace, *, ids: Sequence[UUID], newer: UUID | None) -> Changed:
        """Lets a live memory replace others, all in one transaction; they are linked with it.

        Without `newer`, the restoration of superseded memories is taken back: a live memory that replaced them is known
        by its link.

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

        return await self._all_at_once(workspace, ids, supersede)

    async def quarantine(self, workspace: Workspace, *, ids: Sequence[UUID]) -> Changed:
        """Takes back the release of memories, all in one transaction. Missing are those that nobody had released."""
        return await self._all_at_once(workspace, ids, partial(changes.quarantine_again, ids=ids))

    async def tag(
        self, workspace: Workspace, *, ids: Sequence[UUID], tag: str, mask: bool = True, remove: bool = False
    ) -> Changed:
        """Gives memories a tag, or `remove` it, all in one transaction.

        `missing` has the memories that had the tag already or have 64 tags; with `remove`, those that did not have it.

        Raises:
            InvalidInput: the tag is not valid, or there are too many memories.
            Refused: the tag looks like an instruction to the reader.
        """
        change = changes.UNTAG if remove else changes.TAG
        retag = partial(changes.retag, ids=ids, tag=_tag(tag, mask=mask, remove=remove), statement=change)
        return await self._all_at_once(workspace, ids, retag)

    async def _all_at_once(
        self,
        workspace: Workspace,
        ids: Sequence[UUID],
        change: Callable[[Session], Awaitable[Sequence[UUID]]],
    ) -> Changed:
        """Changes memories in one transaction; returns the changed and the missing ids."""
        if not 1 <= len(ids) <= MOST_AT_ONCE:
            raise InvalidInput("ids", f"1 to {MOST_AT_ONCE:,} are taken at once")
        async with self.database.session(workspace) as session:
            done = set(await change(session))
        unique = tuple(dict.fromkeys(ids))
        return Changed(
            changed=tuple(memory_id for memory_id in unique if memory_id in done),
            missing=tuple(memory_id for memory_id in unique if memory_id not in done),
        )

    async def review_counts(self, workspace: Workspace) -> ReviewCounts:
        """Returns the numbers of memories that people should review."""
        async with self.database.session(workspace, reading=True) as session:
            return ReviewCounts(**await count_to_review(session))
