"""The verb that stores memories."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.engine import Database
from app.db.queue import enqueue
from app.embeddings import store as vectors
from app.embeddings.provider import TokenCounter
from app.memories import lexical_index, sources, store
from app.memories.echoes import note_echoes
from app.memories.memory import NewMemory, Rejection, Remembered
from app.memories.refusals import count_refusals
from app.memories.scored_text import embedded_text
from app.memories.screening import Objection, Screened, screened
from app.memories.store import MemoryRow, row_of
from app.workspaces import store as workspaces
from app.workspaces.language import configuration
from app.workspaces.workspace import Workspace, checked_name

BATCH = 500
"""Memories a transaction: large enough that its commit costs nothing, small enough that a reader never waits."""


@dataclass(slots=True)
class Counts:
    """What became of memories so far."""

    stored: int = 0
    updated: int = 0
    unchanged: int = 0


async def remember(
    database: Database,
    counter: TokenCounter,
    *,
    workspace: str,
    language: str,
    memories: Sequence[NewMemory],
    mask: bool = True,
) -> Remembered:
    """Store memories. Each is findable by its words at once, by its meaning when a worker has embedded it.

    Known text (same kind, source, ordinal, title and body) is not stored twice; date, tags, metadata, score and run of
    such a memory become those given here. What cannot be stored, would be worthless or instructs its reader is
    rejected with its reason, and so is what a run was given and says again: that counts as a use of the memory which
    it came from. The rest goes on. Secrets are masked unless `mask` is off.
    `language` is that of a workspace which this call makes.

    Raises:
        InvalidInput: the workspace may not be called that.
        DatabaseUnavailable: nothing of the batch that was under way is stored; earlier batches are.
    """
    checked_name(workspace)
    ids: list[UUID | None] = [None] * len(memories)
    rejected: list[Rejection] = []
    counts = Counts()
    for start in range(0, len(memories), BATCH):
        batch = [screened(memory, mask=mask) for memory in memories[start : start + BATCH]]
        batch = await note_echoes(database, workspace, batch)
        rejected += [_rejection(start + place, item.objection) for place, item in enumerate(batch) if item.objection]
        taken = [start + place for place, item in enumerate(batch) if item.objection is None]
        kept = [item for item in batch if item.objection is None]
        for index, memory_id in zip(
            taken, await _store_batch(database, counter, workspace, language, kept, counts), strict=True
        ):
            ids[index] = memory_id
    await count_refusals(database, workspace, language, rejected)
    return Remembered(
        ids=tuple(ids),
        stored=counts.stored,
        updated=counts.updated,
        unchanged=counts.unchanged,
        rejected=tuple(rejected),
    )


async def _store_batch(
    database: Database,
    counter: TokenCounter,
    workspace: str,
    language: str,
    batch: Sequence[Screened],
    counts: Counts,
) -> list[UUID]:
    if not batch:
        return []
    tokens = counter.count_many([embedded_text(item.memory.title, item.memory.body) for item in batch])
    async with database.transaction() as connection:
        target = await workspaces.ensure(connection, workspace, configuration(language))
        rows = await _rows(connection, target, batch, tokens)
        ids = await write(connection, target, rows, counts)
        await workspaces.add_languages(connection, target, {row.language for row in rows})
    return ids


async def _rows(
    connection: AsyncConnection, target: Workspace, batch: Sequence[Screened], tokens: Sequence[int]
) -> list[MemoryRow]:
    references = [item.memory.source for item in batch if item.memory.source is not None]
    known = await sources.ensure(connection, target.workspace_id, references)
    return [
        row_of(
            item.memory,
            source_id=None if item.memory.source is None else known[item.memory.source.kind, item.memory.source.uri],
            language=target.language if item.memory.language is None else configuration(item.memory.language),
            tokens=count,
            findings=item.findings,
        )
        for item, count in zip(batch, tokens, strict=True)
    ]


def _rejection(index: int, objection: Objection) -> Rejection:
    return Rejection(index=index, reason=objection.message, code=objection.code, details=objection.details)


async def write(
    connection: AsyncConnection, target: Workspace, rows: Sequence[MemoryRow], counts: Counts
) -> list[UUID]:
    """Store memories or find those that they are already; the id of each. Counts what became of them."""
    workspace_id = target.workspace_id
    known = await store.find_known(connection, workspace_id, rows)
    fresh = {row.identity: row for row in rows if row.identity not in known}
    inserted = await store.insert(connection, workspace_id, list(fresh.values())) if fresh else set()
    if len(inserted) < len(fresh):
        known |= await store.find_known(connection, workspace_id, list(fresh.values()))
    ids = {identity: row.memory_id for identity, row in known.items()}
    ids |= {row.identity: row.memory_id for row in fresh.values() if row.memory_id in inserted}
    changed = [
        replace(row, memory_id=ids[row.identity]) for row in _last_given(rows) if _differs(row, known.get(row.identity))
    ]
    if changed:
        await store.update(connection, workspace_id, changed)
        await lexical_index.index(connection, workspace_id, [row.memory_id for row in changed])
    if inserted:
        await store.insert_observations(
            connection, workspace_id, [row for row in fresh.values() if row.memory_id in inserted]
        )
        await make_findable(connection, workspace_id, sorted(inserted))
    counts.stored += len(inserted)
    counts.updated += len(changed)
    counts.unchanged += len(rows) - len(inserted) - len(changed)
    return [ids[row.identity] for row in rows]


def _last_given(rows: Sequence[MemoryRow]) -> list[MemoryRow]:
    return list({row.identity: row for row in rows}.values())


def _differs(row: MemoryRow, known: Row[Any] | None) -> bool:
    return known is not None and row.changeable != store.changeable_of(known)


async def make_findable(connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID]) -> None:
    """Index new live memories by their words and ask a worker for their vectors and for fresh statistics."""
    await lexical_index.index(connection, workspace_id, ids)
    await vectors.wait_for_vectors(connection, workspace_id, ids)
    await enqueue(connection, "embed_waiting", lock="embed_waiting")
    await enqueue_statistics(connection, workspace_id)


async def enqueue_statistics(connection: AsyncConnection, workspace_id: int) -> None:
    """Ask a worker to take the workspace's lexical statistics anew, should they have become stale."""
    await enqueue(
        connection, "refresh_statistics", lock=f"refresh_statistics:{workspace_id}", workspace_id=workspace_id
    )
