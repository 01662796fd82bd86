"""One file, one transaction: it is taken in whole or not at all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.engine import Database
from app.db.queue import enqueue
from app.embeddings import store as vectors
from app.embeddings.store import StoredModel
from app.memories import lexical_index
from app.memories import store as memories
from app.memories.remember import enqueue_statistics
from app.memories.store import MemoryRow
from app.reports import store
from app.reports.matching import Matching, matched
from app.reports.outcome import CHANGED, NEW, UNCHANGED, FileOutcome
from app.reports.prepare import Prepared
from app.workspaces import store as workspaces
from app.workspaces.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What became of a file, and how many of its chunks still wait for a vector."""

    outcome: FileOutcome
    waiting: int = 0


async def write_file(
    database: Database,
    target: Workspace,
    prepared: Prepared,
    *,
    model: StoredModel | None,
    literals: Mapping[bytes, str],
) -> Written:
    """Make the file's source hold exactly these chunks.

    `literals` are vectors by content hash; a chunk that has none goes on the waiting list.
    """
    async with database.transaction() as connection:
        workspace_id = target.workspace_id
        source = await store.locked_file(connection, workspace_id, uri=prepared.uri, title=prepared.title)
        if source.live and source.content_hash == prepared.content_hash:
            return Written(outcome=_outcome(UNCHANGED, prepared))
        rows = [replace(row, source_id=source.source_id) for row in prepared.rows]
        known = await store.known_chunks(connection, workspace_id, source.source_id)
        plan = matched(rows, known)
        waiting = await _carry_out(connection, workspace_id, plan, model, literals)
        await store.keep(
            connection, workspace_id, source.source_id, content_hash=prepared.content_hash, title=prepared.title
        )
        await workspaces.add_languages(connection, target, {row.language for row in rows})
        await enqueue_statistics(connection, workspace_id)
    status = CHANGED if source.live and source.content_hash else NEW
    return Written(outcome=_outcome(status, prepared, plan.new), waiting=waiting)


async def _carry_out(
    connection: AsyncConnection,
    workspace_id: int,
    plan: Matching,
    model: StoredModel | None,
    literals: Mapping[bytes, str],
) -> int:
    await memories.retire(connection, workspace_id, plan.retired)
    kept = [replace(row, memory_id=chunk.memory_id) for chunk, row in plan.kept]
    revived = [row for (chunk, _), row in zip(plan.kept, kept, strict=True) if not chunk.live]
    await store.revive(connection, workspace_id, [row.memory_id for row in revived])
    await memories.update(connection, workspace_id, kept)
    await memories.insert(connection, workspace_id, plan.new)
    await lexical_index.index(connection, workspace_id, [row.memory_id for row in (*kept, *plan.new)])
    return await _give_vectors(connection, workspace_id, [*revived, *plan.new], model, literals)


async def _give_vectors(
    connection: AsyncConnection,
    workspace_id: int,
    rows: Sequence[MemoryRow],
    model: StoredModel | None,
    literals: Mapping[bytes, str],
) -> int:
    """How many of these memories have to wait for their vector."""
    ready = [row for row in rows if model is not None and row.content_hash in literals]
    if model is not None and ready:
        await vectors.write(
            connection,
            model,
            workspace_id,
            [row.memory_id for row in ready],
            [literals[row.content_hash] for row in ready],
        )
    given = {row.memory_id for row in ready}
    waiting: list[UUID] = [row.memory_id for row in rows if row.memory_id not in given]
    if waiting:
        await vectors.wait_for_vectors(connection, workspace_id, waiting)
        await enqueue(connection, "embed_waiting", lock="embed_waiting")
    return len(waiting)


def _outcome(status: str, prepared: Prepared, new: Sequence[MemoryRow] = ()) -> FileOutcome:
    return FileOutcome(
        path=prepared.title,
        status=status,
        chunks=len(prepared.rows),
        stored=len(new),
        tokens=sum(row.tokens for row in new),
    )
