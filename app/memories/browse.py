"""The verbs that show what is stored."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.engine import Database
from app.errors import InvalidInput, NotFound
from app.memories import reads as shown
from app.memories import sources
from app.memories.filters import Filters, check, conditions
from app.memories.memory import SOURCE_KINDS, Memory, Source
from app.workspaces import store as workspaces
from app.workspaces.workspace import checked_name

LARGEST_PAGE = 200

NEIGHBOURHOOD = 2
"""Places in a source; as far as retrieval lifts neighbours."""
MOST_NEIGHBOURS = 20

Place = tuple[datetime, UUID]
"""Where a page ended: the creation time and id of its last item."""
Order = tuple[
    Literal["created", "occurred", "score", "quality"],
    Literal["desc", "asc"],
]
NEWEST: Order = ("created", "desc")
EVERYTHING = Filters()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some of the memories that meet the conditions."""

    memories: tuple[Memory, ...]
    end: tuple[datetime | float, UUID] | None
    """Where it ended: the last memory's value in the order, and its id; None where no more can follow."""
    total: int | None
    """How many there are on all pages, counted up to 10,001; None where that was not asked."""


async def get_memory(database: Database, *, workspace: str, memory_id: UUID) -> Memory:
    """One memory, live or retired.

    Raises:
        NotFound: the workspace has no such memory.
    """
    async with with_memory(database, workspace, memory_id) as (_, _, memory):
        return memory


@asynccontextmanager
async def with_memory(
    database: Database, workspace: str, memory_id: UUID
) -> AsyncIterator[tuple[AsyncConnection, int, Memory]]:
    """A connection for what else is to be read of a memory, live or retired; its workspace's id; and the memory.

    Raises:
        NotFound: the workspace has no such memory.
    """
    async with database.statements() as connection:
        target = await workspaces.find(connection, checked_name(workspace))
        found = None if target is None else await shown.get(connection, target.workspace_id, memory_id)
        if target is None or found is None:
            raise NotFound(f"there is no memory {memory_id} in workspace {workspace}")
        yield connection, target.workspace_id, found


async def list_memories(
    database: Database,
    *,
    workspace: str,
    filters: Filters = EVERYTHING,
    source_id: UUID | None = None,
    limit: int = 50,
    before: Place | None = None,
) -> Sequence[Memory]:
    """Live memories, newest first, after the place that `before` names.

    Raises:
        InvalidInput: a condition that cannot be met, or a limit out of range.
    """
    page = await page_memories(
        database, workspace=workspace, filters=filters, source_id=source_id, limit=limit, after=before, counted=False
    )
    return list(page.memories)


async def page_memories(
    database: Database,
    *,
    workspace: str,
    filters: Filters = EVERYTHING,
    source_id: UUID | None = None,
    order: Order = NEWEST,
    limit: int = 50,
    after: tuple[datetime | float, UUID] | None = None,
    counted: bool = True,
) -> Page:
    """Live memories in an order, after the place that `after` names.

    Raises:
        InvalidInput: a condition that cannot be met, or a limit out of range.
    """
    _check_limit(limit)
    check(filters, within="")
    clauses, values = conditions(filters)
    if source_id is not None:
        clauses, values = [*clauses, "m.source_id = %(source_id)s"], {**values, "source_id": source_id}
    async with database.statements() as connection:
        target = await workspaces.find(connection, checked_name(workspace))
        if target is None:
            return Page(memories=(), end=None, total=0)
        key = target.workspace_id
        found = await shown.page(connection, key, clauses=clauses, values=values, order=order, after=after, limit=limit)
        total = await shown.count(connection, key, clauses=clauses, values=values) if counted else None
    end = (found[-1][1], found[-1][0].memory_id) if len(found) == limit else None
    return Page(memories=tuple(memory for memory, _ in found), end=end, total=total)


async def neighbours_of(database: Database, *, workspace: str, memory_id: UUID) -> Sequence[Memory]:
    """The live memories up to two places before and after one in its source, in their order.

    Raises:
        NotFound: the workspace has no such memory.
    """
    async with with_memory(database, workspace, memory_id) as (connection, workspace_id, _):
        return await shown.neighbours(
            connection, workspace_id, memory_id, distance=NEIGHBOURHOOD, limit=MOST_NEIGHBOURS
        )


async def list_sources(
    database: Database, *, workspace: str, kind: str | None = None, limit: int = 50, before: Place | None = None
) -> Sequence[Source]:
    """Sources, retired ones included, newest first, after the place that `before` names.

    Raises:
        InvalidInput: an unknown kind, or a limit out of range.
    """
    _check_limit(limit)
    if kind is not None and kind not in SOURCE_KINDS:
        raise InvalidInput("kind", f"{kind!r} is not a kind of source; there are {', '.join(SOURCE_KINDS)}")
    async with database.statements() as connection:
        target = await workspaces.find(connection, checked_name(workspace))
        if target is None:
            return []
        return await sources.page(connection, target.workspace_id, kind=kind, limit=limit, before=before)


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= LARGEST_PAGE:
        raise InvalidInput("limit", f"must be from 1 to {LARGEST_PAGE}")


Counts = tuple[tuple[str, int], ...]
MOST_VALUES = 200
"""Of each facet: more is no choice any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """The values that live memories have, each with how many have it, the most frequent first."""

    kinds: Counts = ()
    task_types: Counts = ()
    verdicts: Counts = ()
    tags: Counts = ()


async def list_facets(database: Database, *, workspace: str) -> Facets:
    """What there is to filter by."""
    async with database.statements() as connection:
        target = await workspaces.find(connection, checked_name(workspace))
        if target is None:
            return Facets()
        found = await shown.facets(connection, target.workspace_id, limit=MOST_VALUES)
    return Facets(**{name: tuple(counts) for name, counts in found.items()})
