"""Looks up what an import finds stored: runs, and observations that were taken out again."""

import asyncio
from collections.abc import Sequence

import psycopg

from app.db.database import Database
from app.intake.imports.exported import filled_of
from app.memories.admission import reason_to_reject
from app.memories.memory import NewMemory, content_hash
from app.runs import store as runs
from app.safety.secrets import masked_values
from app.workspaces.workspace import Workspace

REFUSED_BY_THE_DATABASE = (psycopg.DataError, psycopg.IntegrityError, psycopg.ProgrammingError)

# A person deleted it, a better one took its place, or it was held back; none of these comes back by itself.
TAKEN_OUT = """
SELECT DISTINCT m.content_hash FROM memories m
WHERE m.workspace_id = %(workspace_id)s AND m.kind = 'observation' AND m.source_id IS NULL
    AND m.retired_as IN ('deleted', 'superseded', 'quarantined')
    AND m.content_hash = ANY(%(hashes)s::bytea[])
    AND NOT EXISTS (
        SELECT FROM memories o
        WHERE o.workspace_id = m.workspace_id AND o.valid_until IS NULL AND o.content_hash = m.content_hash
            AND o.kind = m.kind AND o.source_id IS NULL AND o.ordinal IS NULL
    )
"""

JUDGED = """
SELECT coalesce(bool_or(request ->> 'final_score' IS NOT NULL), false) AS final_score,
    coalesce(bool_or(request ->> 'verdict' <> ''), false) AS verdict
FROM compressions WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s AND NOT earlier
"""


async def taken_out(
    database: Database, workspace: Workspace, memories: Sequence[NewMemory], *, mask: bool
) -> list[bool]:
    """Returns of each of these observations whether it was stored before and is retired."""
    hashes = await asyncio.to_thread(_hashes, memories, workspace.language, mask)
    async with database.session(workspace, transaction=False) as session:
        retired = await session.column(TAKEN_OUT, {"hashes": list(set(filter(None, hashes)))})
    found = {bytes(item) for item in retired}
    return [item in found for item in hashes]


def _hashes(memories: Sequence[NewMemory], language: str, mask: bool) -> list[bytes | None]:  # noqa: FBT001 - for a thread
    """Returns the content hashes under which they are stored; None for what is refused anyway."""
    fit = [memory if reason_to_reject(memory) is None else None for memory in memories]
    clean = [memory if memory is None or not mask else masked_values(memory) for memory in fit]
    return [None if memory is None else content_hash(memory, language) for memory in clean]


async def filled(database: Database, workspace: Workspace, run_id: str) -> frozenset[str]:
    """Returns the names of a run's fields that are stored, be it only in what its observation was asked for with."""
    async with database.session(workspace, transaction=False) as session:
        run = await runs.find(session, run_id)
        judged = await session.one(JUDGED, {"run_id": run_id})
    return filled_of(run) | {name for name in ("final_score", "verdict") if getattr(judged, name)}


def refusal(error: Exception) -> str:
    """Returns why the database refuses a value, for the person who imports it."""
    return f"the database refuses it: {next(iter(str(error).splitlines()), type(error).__name__)}"
