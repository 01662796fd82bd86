"""The list of memories that wait to be linked; it stands in the cellar because two rooms write it."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.queue import enqueue

WORDS, VECTORS = "words", "vectors"
"""What a memory is linked by once it has it: its words at once, its vector when that is there."""

WAIT = text("""
INSERT INTO pending_links (workspace_id, memory_id, step)
SELECT :workspace_id, unnest(CAST(:ids AS uuid[])), :step ON CONFLICT DO NOTHING
""")


async def wait_for_links(connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID], *, step: str) -> None:
    """Ask a worker to link these live memories by their WORDS or VECTORS, in this transaction."""
    if ids:
        await connection.execute(WAIT, {"workspace_id": workspace_id, "ids": list(ids), "step": step})
        await enqueue(connection, "link_waiting", lock="link_waiting")
