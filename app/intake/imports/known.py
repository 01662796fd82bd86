"""What an import finds that was stored before: observations that were taken out again, and runs."""

import asyncio
from collections.abc import Sequence

from sqlalchemy import text

from app.db.engine import Database
from app.intake.imports.exported import filled_of
from app.memories.admission import reason_to_reject
from app.memories.memory import NewMemory, content_hash
from app.runs import store as runs
from app.safety.secrets import masked_values
from app.workspaces import store as workspaces

# A person deleted it, a better one took its place, or it was held back; none of these comes back by itself.
TAKEN_OUT = text("""
SELECT DISTINCT m.content_hash FROM memories m
WHERE m.workspace_id = :workspace_id AND m.kind = 'observation' AND m.source_id IS NULL
    AND m.retired_as IN ('deleted', 'superseded', 'quarantined')
    AND m.content_hash = ANY(CAST(:hashes AS bytea[]))
    AND NOT EXISTS (
        SELECT 1 FROM memories o
        WHERE o.workspace_id = m.workspace_id AND o.valid_until IS NULL AND o.content_hash = m.content_hash
            AND o.kind = m.kind AND o.source_id IS NULL AND o.ordinal IS NULL
    )
""")


JUDGED = text("""
SELECT coalesce(bool_or(request ->> 'final_score' IS NOT NULL), false) AS final_score,
    coalesce(bool_or(request ->> 'verdict' <> ''), false) AS verdict
FROM compressions WHERE workspace_id = :workspace_id AND run_id = :run_id AND NOT earlier
""")


async def taken_out(database: Database, workspace: str, memories: Sequence[NewMemory], *, mask: bool) -> list[bool]:
    """Whether each of these observations was stored before and is retired."""
    async with database.statements() as connection:
        target = await workspaces.find(connection, workspace)
    if target is None:
        return [False] * len(memories)
    hashes = await asyncio.to_thread(_hashes, memories, target.language, mask)
    values = {"workspace_id": target.workspace_id, "hashes": list(set(filter(None, hashes)))}
    async with database.statements() as connection:
        found = {bytes(item) for item in (await connection.execute(TAKEN_OUT, values)).scalars()}
    return [item in found for item in hashes]


def _hashes(memories: Sequence[NewMemory], language: str, mask: bool) -> list[bytes | None]:  # noqa: FBT001 - for a thread
    """As they are stored; what is refused anyway has none."""
    fit = [memory if reason_to_reject(memory) is None else None for memory in memories]
    clean = [memory if memory is None or not mask else masked_values(memory) for memory in fit]
    return [None if memory is None else content_hash(memory, language) for memory in clean]


async def filled(database: Database, workspace: str, run_id: str) -> frozenset[str]:
    """What is stored of a run: the names of its fields that say something, be it only in what its observation was sent
    with.
    """
    async with database.statements() as connection:
        target = await workspaces.find(connection, workspace)
        if target is None:
            return frozenset()
        run = await runs.find(connection, target.workspace_id, run_id)
        values = {"workspace_id": target.workspace_id, "run_id": run_id}
        judged = (await connection.execute(JUDGED, values)).one()
    said = {name for name in ("final_score", "verdict") if getattr(judged, name)}
    return filled_of(run) | said
