"""The verbs that show stored memories and their sources."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias
from uuid import UUID

from app.errors import InvalidInput, NotFound
from app.foundation.db.database import Database
from app.foundation.db.session import Session
from app.storage.links import store as links
from app.storage.links.relations import Linked
from app.storage.memories import sources, store
from app.storage.memories.filters import Filters, check, conditions_of_list, count, facets, neighbours, page
from app.storage.memories.memory import SOURCE_KINDS, Memory, Source
from app.storage.tenants.workspace import Workspace

LARGEST_PAGE = 200

NEIGHBOURHOOD = 2
"""Distance of the farthest neighbours that are shown, in ordinals; retrieval boosts neighbours up to the same
distance."""
_MOST_NEIGHBOURS = 20
_MOST_LINKED = 200

Place: TypeAlias = tuple[datetime, UUID]
"""The end of a page: the creation time and id of its last item."""
Order: TypeAlias = tuple[
    Literal["created", "occurred", "score", "quality"],
    Literal["desc", "asc"],
]
NEWEST: Order = ("created", "desc")
_EVERYTHING = Filters()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of the memories that meet the conditions."""

    memories: tuple[Memory, ...]
    end: tuple[datetime | float, UUID] | None
    """The last memory's value in the order, and its id; None on the last page."""
    total: int | None
    """The number of memories on all pages, counted up to 10,001; None if it was not asked for."""


async def get_memory(database: Database, *, workspace: Workspace, memory_id: UUID) -> Memory:
    """Returns one memory, live or retired.

    Raises:
        NotFound: the workspace has no such memory.
    """
    async with with_memory(database, workspace, memory_id) as (_, memory):
        return memory


@asynccontextmanager
async def with_memory(
    database: Database, workspace: Workspace, memory_id: UUID
) -> AsyncIterator[tuple[Session, Memory]]:
    """Opens a session; yields it and a memory, live or retired.

    Raises:
        NotFound: the workspace has no such memory.
    """
    async with database.session(workspace, reading=True) as session:
        found = await store.get(session, memory_id)
        if found is None:
            raise NotFound(f"there is no memory {memory_id} in workspace {workspace.name}")
        yield session, found


async def list_memories(
    database: Database,
    *,
    workspace: Workspace,
    filters: Filters = _EVERYTHING,
    source_id: UUID | None = None,
    limit: int = 50,
    before: Place | None = None,
) -> Sequence[Memory]:
    """Returns live memories, newest first, after the place that `before` names.

    Raises:
        InvalidInput: a condition that cannot be met, or a limit out of range.
    """
    found = await page_memories(
        database, workspace=workspace, filters=filters, source_id=source_id, limit=limit, after=before, counted=False
    )
    return list(found.memories)


async def page_memories(
    database: Database,
    *,
    workspace: Workspace,
    filters: Filters = _EVERYTHING,
    source_id: UUID | None = None,
    order: Order = NEWEST,
    limit: int = 50,
    after: tuple[datetime | float, UUID] | None = None,
    counted: bool = True,
) -> Page:
    """Returns live memories in an order, after the place that `after` names.

    Raises:
        InvalidInput: a condition that cannot be met, or a limit out of range.
    """
    _check_limit(limit)
    check(filters, within="")
    async with database.session(workspace, reading=True) as session:
        met = await conditions_of_list(session, filters, source_id)
        found = await page(session, met, order=order, after=after, limit=limit)
        total = await count(session, met) if counted else None
    end = (found[-1][1], found[-1][0].memory_id) if len(found) == limit else None
    return Page(memories=tuple(memory for memory, _ in found), end=end, total=total)


async def neighbours_of(database: Database, *, workspace: Workspace, memory_id: UUID) -> Sequence[Memory]:
    """Returns the live memories up to two places before and after one in its source, in their order.

    Raises:
        NotFound: the workspace has no such memory.
    """
    async with with_memory(database, workspace, memory_id) as (session, _):
        return (await neighbours(session, [memory_id], distance=NEIGHBOURHOOD, limit=_MOST_NEIGHBOURS))[memory_id]


async def surroundings(
    database: Database, *, workspace: Workspace, ids: Sequence[UUID], distance: int
) -> Mapping[UUID, Sequence[Memory]]:
    """Returns, for each of these memories, the live ones up to `distance` places before and after it in its source."""
    if not ids or not distance:
        return dict.fromkeys(ids, ())
    async with database.session(workspace, reading=True) as session:
        return await neighbours(session, ids, distance=distance, limit=_MOST_NEIGHBOURS)


async def links_of(database: Database, *, workspace: Workspace, memory_id: UUID) -> Sequence[Linked]:
    """Returns the live memories that a memory is linked with, at most _MOST_LINKED.

    The memories before and after it in its source come first (`next`), then given links, then found ones.

    Raises:
        NotFound: the workspace has no such memory.
    """
    async with with_memory(database, workspace, memory_id) as (session, _):
        return await links.links_of(session, memory_id, _MOST_LINKED)


async def list_sources(
    database: Database, *, workspace: Workspace, kind: str | None = None, limit: int = 50, before: Place | None = None
) -> Sequence[Source]:
    """Returns sources, retired ones included, newest first, after the place that `before` names.

    Raises:
        InvalidInput: the kind is unknown, or the limit is out of range.
    """
    _check_limit(limit)
    if kind is not None and kind not in SOURCE_KINDS:
        raise InvalidInput("kind", f"{kind!r} is not a kind of source; there are {', '.join(SOURCE_KINDS)}")
    async with database.session(workspace, reading=True) as session:
        return await sources.page(session, kind=kind, limit=limit, before=before)


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= LARGEST_PAGE:
        raise InvalidInput("limit", f"must be from 1 to {LARGEST_PAGE}")


Counts: TypeAlias = tuple[tuple[str, int], ...]
_MOST_VALUES = 200
"""Most values of each facet; nobody chooses from more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """The values of the newest 100,000 live memories to filter by, each with its count, the most frequent first."""

    kinds: Counts = ()
    task_types: Counts = ()
    verdicts: Counts = ()
    tags: Counts = ()


async def list_facets(database: Database, *, workspace: Workspace) -> Facets:
    """Returns the values to filter by, with their counts."""
    async with database.session(workspace, reading=True) as session:
        found = await facets(session, limit=_MOST_VALUES)
    return Facets(**{name: tuple(counts) for name, counts in found.items()})
