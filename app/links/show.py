"""The verb that shows what a memory is linked with."""

from collections.abc import Sequence
from uuid import UUID

from app.db.engine import Database
from app.links import store
from app.links.link import Linked
from app.memories.browse import with_memory

MOST_SHOWN = 200


async def links_of(database: Database, *, workspace: str, memory_id: UUID) -> Sequence[Linked]:
    """The live memories that a memory is linked with, at most MOST_SHOWN.

    The memories before and after it in its source come first (`next`), then what callers said, then what was found.

    Raises:
        NotFound: the workspace has no such memory.
    """
    async with with_memory(database, workspace, memory_id) as (connection, workspace_id, _):
        return await store.links_of(connection, workspace_id, memory_id, MOST_SHOWN)
