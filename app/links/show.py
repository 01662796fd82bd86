"""The verb that shows what a memory is linked with."""

from collections.abc import Sequence
from uuid import UUID

from app.db.engine import Database
from app.links import store
from app.links.link import Linked
from app.memories.browse import get_memory
from app.workspaces import store as workspaces

MOST_SHOWN = 200


async def links_of(database: Database, *, workspace: str, memory_id: UUID) -> Sequence[Linked]:
    """The live memories that a memory is linked with, at most MOST_SHOWN.

    The memories before and after it in its source come first (`next`), then what callers said, then what was found.

    Raises:
        NotFound: the workspace has no such memory.
    """
    await get_memory(database, workspace=workspace, memory_id=memory_id)
    async with database.statements() as connection:
        target = await workspaces.find(connection, workspace)
        assert target is not None, "the memory is in it"  # noqa: S101
        return await store.links_of(connection, target.workspace_id, memory_id, MOST_SHOWN)
