"""The list of memories that wait to be linked; it stands in the cellar because two rooms write it."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.queue import LINK, enqueue

WORDS, VECTORS = "words", "vectors"
"""What a memory is linked by once it has it: its words at once, its vector when that is there."""

WAIT = text("""
INSERT INTO pending_links AS p (workspace_id, memory_id, step)
SELECT DISTINCT :workspace_id, memory_id, :step FROM unnest(CAST(:ids AS uuid[])) AS given(memory_id) ORDER BY 2
ON CONFLICT (workspace_id, memory_id, step) DO UPDATE SET asked = p.asked + 1
""")


async def wait_for_links(connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID], *, step: str) -> None:
    """Ask a worker to link these live memories by their WORDS or VECTORS, in this transaction.

    Asking again while one is being linked has it linked once more.
    """
    if ids:
        await connection.execute(WAIT, {"workspace_id": workspace_id, "ids": list(ids), "step": step})
        await enqueue(connection, LINK)


WAIT_ALL = text("""
INSERT INTO pending_links AS p (workspace_id, memory_id, step)
SELECT e.workspace_id, e.memory_id, :step FROM embeddings e JOIN embedding_models m USING (model_id)
WHERE m.active ORDER BY e.workspace_id, e.memory_id
ON CONFLICT (workspace_id, memory_id, step) DO UPDATE SET asked = p.asked + 1
""")


async def compare_all_anew(connection: AsyncConnection) -> None:
    """Have all memories linked by the served model's vectors: what is near to what was another model's word."""
    await connection.execute(text("DELETE FROM links WHERE relation = 'similar'"))
    await connection.execute(WAIT_ALL, {"step": VECTORS})
    await enqueue(connection, LINK)
