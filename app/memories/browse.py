"""The verbs that show what is stored."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from app.db.engine import Database
from app.errors import InvalidInput, NotFound
from app.memories import sources, store
from app.memories.admission import unstorable
from app.memories.memory import KINDS, SOURCE_KINDS, Memory, Source
from app.workspaces import store as workspaces
from app.workspaces.workspace import checked_name

LARGEST_PAGE = 200

Place = tuple[datetime, UUID]
"""Where a page ended: the creation time and id of its last item."""


async def get_memory(database: Database, *, workspace: str, memory_id: UUID) -> Memory:
    """One memory, live or retired.

    Raises:
        NotFound: the workspace has no such memory.
    """
    async with database.statements() as connection:
        target = await workspaces.find(connection, checked_name(workspace))
        found = None if target is None else await store.get(connection, target.workspace_id, memory_id)
    if found is None:
        raise NotFound(f"there is no memory {memory_id} in workspace {workspace}")
    return found


async def list_memories(
    database: Database,
    *,
    workspace: str,
    kind: str | None = None,
    tags: Sequence[str] = (),
    source_id: UUID | None = None,
    limit: int = 50,
    before: Place | None = None,
) -> Sequence[Memory]:
    """Live memories, newest first, after the place that `before` names.

    Raises:
        InvalidInput: an unknown kind, or a limit out of range.
    """
    _check_limit(limit)
    if kind is not None and kind not in KINDS:
        raise InvalidInput("kind", f"{kind!r} is not a kind; there are {', '.join(KINDS)}")
    for reason in unstorable({"tag": list(tags)}):
        raise InvalidInput("tag", reason.partition(": ")[2])
    conditions = ["m.kind = :kind"] * (kind is not None) + ["m.tags @> CAST(:tags AS text[])"] * bool(tags)
    conditions += ["m.source_id = :source_id"] * (source_id is not None)
    given = {"kind": kind, "tags": list(tags) or None, "source_id": source_id}
    async with database.statements() as connection:
        target = await workspaces.find(connection, checked_name(workspace))
        if target is None:
            return []
        return await store.newest(
            connection,
            target.workspace_id,
            conditions=conditions,
            values={name: value for name, value in given.items() if value is not None},
            limit=limit,
            before=before,
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
