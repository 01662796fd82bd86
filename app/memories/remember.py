"""The verb that stores memories."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Row
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.engine import Database, again_after_deadlock, sqlstate_of
from app.db.queue import enqueue
from app.embeddings import store as vectors
from app.embeddings.provider import EmbeddingProvider, TokenCounter
from app.errors import DatabaseUnavailable
from app.memories import details, lexical_index, sources, store
from app.memories.echoes import note_echoes
from app.memories.memory import NewMemory, Rejection, Remembered
from app.memories.refusals import count_refusals
from app.memories.scored_text import embedded_text
from app.memories.screening import INVALID, Objection, Screened, screened
from app.memories.store import Identity, MemoryRow, row_of
from app.workspaces import store as workspaces
from app.workspaces.language import configuration
from app.workspaces.workspace import Workspace, checked_name

BATCH = 500
"""Memories a transaction: large enough that its commit costs nothing, small enough that a reader never waits."""
BATCH_CHARACTERS = 4_000_000
"""Of a batch's bodies: it is sent as one document, and held in memory a few times over."""
TSVECTOR_TOO_LARGE = "54000"
"""SQLSTATE program_limit_exceeded."""
ATTEMPTS = 3
"""To find or insert what others insert and retire at the same moment."""


@dataclass(slots=True)
class Counts:
    """What became of memories so far."""

    stored: int = 0
    updated: int = 0
    unchanged: int = 0

    def add(self, other: "Counts") -> None:
        """Count what became of others as well."""
        self.stored += other.stored
        self.updated += other.updated
        self.unchanged += other.unchanged


async def remember(
    database: Database,
    counter: TokenCounter,
    *,
    workspace: str,
    language: str,
    memories: Sequence[NewMemory],
    mask: bool = True,
    provider: EmbeddingProvider | None = None,
    known_first: bool = False,
) -> Remembered:
    """Store memories. Each is findable by its words at once, by its meaning when a worker has embedded it.

    Known text (same kind, source, ordinal, title and body) is not stored twice: tags and metadata are added to what
    such a memory has, its score, date and an observation's details become those given here (or stay, with
    `known_first`), and the run that first said it stays its run. What cannot be stored, would be worthless or
    instructs its reader is rejected with its reason, and so is what a run was given and says again: that counts as a
    use of the memory which it came from. The rest goes on. Secrets are masked unless `mask` is off.
    `language` is that of a workspace which this call makes. With a `provider` an echo is also known in other words.

    Raises:
        InvalidInput: the workspace may not be called that.
        DatabaseUnavailable: nothing of the batch that was under way is stored; earlier batches are.
    """
    checked_name(workspace)
    ids: list[UUID | None] = [None] * len(memories)
    rejected: list[Rejection] = []
    counts = Counts()
    for start, given in _batches(memories):
        batch = await asyncio.to_thread(_screened, given, mask)
        batch = await note_echoes(database, provider, workspace, batch)
        kept = [item for item in batch if item.objection is None]
        door = _Door(database, counter, workspace, language, known_first)
        stored = iter(await _stored(door, kept, counts))
        for index, item in enumerate(batch, start):
            outcome = item.objection or next(stored)
            if isinstance(outcome, Objection):
                rejected.append(_rejection(index, outcome))
            else:
                ids[index] = outcome
    await count_refusals(database, workspace, language, rejected)
    return Remembered(
        ids=tuple(ids),
        stored=counts.stored,
        updated=counts.updated,
        unchanged=counts.unchanged,
        rejected=tuple(rejected),
    )


def _batches(memories: Sequence[NewMemory]) -> Iterator[tuple[int, Sequence[NewMemory]]]:
    """Runs of at most BATCH memories and about BATCH_CHARACTERS, each with the place of its first."""
    start, characters = 0, 0
    for place, memory in enumerate(memories):
        if place > start and (place - start == BATCH or characters + len(memory.body) > BATCH_CHARACTERS):
            yield start, memories[start:place]
            start, characters = place, 0
        characters += len(memory.body)
    if memories:
        yield start, memories[start:]


def _screened(memories: Sequence[NewMemory], mask: bool) -> list[Screened]:  # noqa: FBT001 - for a thread
    return [screened(memory, mask=mask) for memory in memories]


class _Door(NamedTuple):
    """What every batch of a call shares."""

    database: Database
    counter: TokenCounter
    workspace: str
    language: str
    known_first: bool


async def _stored(door: _Door, batch: Sequence[Screened], counts: Counts) -> list[UUID | Objection]:
    """The id of each, or why it could not be indexed: then it alone is left out, by halving the batch around it."""
    try:
        return [*await again_after_deadlock(lambda: _store_batch(door, batch, counts))]
    except OperationalError as error:
        if sqlstate_of(error) != TSVECTOR_TOO_LARGE:
            raise
    if len(batch) == 1:
        message = "body: has too many different words for the text index (1 MB of them); split it"
        return [Objection(message=message, code=INVALID)]
    middle = len(batch) // 2
    halves = (batch[:middle], batch[middle:])
    return [item for half in halves for item in await _stored(door, half, counts)]


async def _store_batch(door: _Door, batch: Sequence[Screened], counts: Counts) -> list[UUID]:
    if not batch:
        return []
    texts = [embedded_text(item.memory.title, item.memory.body) for item in batch]
    tokens = await asyncio.to_thread(door.counter.count_many, texts)
    async with door.database.transaction() as connection:
        target = await workspaces.ensure(connection, door.workspace, configuration(door.language))
        rows = await _rows(connection, target, batch, tokens)
        await workspaces.add_languages(connection, target, {row.language for row in rows})
        ids = await write(connection, target, rows, written := Counts(), known_first=door.known_first)
    counts.add(written)
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
    connection: AsyncConnection,
    target: Workspace,
    rows: Sequence[MemoryRow],
    counts: Counts,
    *,
    known_first: bool = False,
) -> list[UUID]:
    """Store memories or find those that they are already; the id of each. Counts what became of them."""
    workspace_id = target.workspace_id
    known, fresh = await _found_or_inserted(connection, workspace_id, rows)
    ids = {identity: row.memory_id for identity, row in (known | fresh).items()}
    inserted = [row.memory_id for row in fresh.values()]
    changed = _changed(rows, known, known_first=known_first)
    if changed:
        # Read again under their locks: another writer may have given them something in between.
        await store.lock(connection, workspace_id, [row.memory_id for row in changed])
        changed = _changed(rows, await store.find_known(connection, workspace_id, changed), known_first=known_first)
        await store.update(connection, workspace_id, changed)
        await lexical_index.index(connection, workspace_id, [row.memory_id for row in changed])
    again = {known[row.identity].memory_id: row for row in rows if row.identity in known}
    detailed = await details.merge_observations(connection, workspace_id, again, known_first=known_first)
    if inserted:
        await details.insert_observations(connection, workspace_id, list(fresh.values()))
        await make_findable(connection, workspace_id, sorted(inserted))
    counts.stored += len(inserted)
    updated = detailed | {row.memory_id for row in changed}
    counts.updated += len(updated)
    counts.unchanged += len(rows) - len(inserted) - len(updated)
    return [ids[row.identity] for row in rows]


async def _found_or_inserted(
    connection: AsyncConnection, workspace_id: int, rows: Sequence[MemoryRow]
) -> tuple[dict[Identity, Row[Any]], dict[Identity, MemoryRow]]:
    """The live memories that these rows are already, and those that they have become."""
    known = await store.find_known(connection, workspace_id, rows)
    fresh: dict[Identity, MemoryRow] = {}
    for _ in range(ATTEMPTS):
        lacking = {row.identity: row for row in rows if row.identity not in known and row.identity not in fresh}
        if not lacking:
            return known, fresh
        inserted = await store.insert(connection, workspace_id, list(lacking.values()))
        fresh |= {identity: row for identity, row in lacking.items() if row.memory_id in inserted}
        # What was not inserted somebody else has inserted, and may have retired since.
        others = [row for row in lacking.values() if row.memory_id not in inserted]
        known |= await store.find_known(connection, workspace_id, others) if others else {}
    raise DatabaseUnavailable("others store and retire the same memories at this moment; try again")


def _changed(rows: Sequence[MemoryRow], known: Mapping[Identity, Row[Any]], *, known_first: bool) -> list[MemoryRow]:
    """What known memories become; of rows with one identity the last is heard."""
    last = {row.identity: row for row in rows if row.identity in known}
    joined = (store.joined(row, known[identity], known_first=known_first) for identity, row in last.items())
    return [row for row in joined if row is not None]


async def make_findable(connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID]) -> None:
    """Index new live memories by their words and ask a worker for their vectors and for fresh statistics."""
    await lexical_index.index(connection, workspace_id, ids)
    await vectors.wait_for_vectors(connection, workspace_id, ids)
    await enqueue(connection, "embed_waiting", lock="embed_waiting")
    await enqueue_statistics(connection, workspace_id)


async def make_findable_anew(connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID]) -> None:
    """The same for live memories whose text has changed: no vector of what they said before answers any more."""
    await vectors.drop(connection, workspace_id, ids)
    await make_findable(connection, workspace_id, ids)


async def enqueue_statistics(connection: AsyncConnection, workspace_id: int) -> None:
    """Ask a worker to take the workspace's lexical statistics anew, should they have become stale."""
    await enqueue(
        connection, "refresh_statistics", lock=f"refresh_statistics:{workspace_id}", workspace_id=workspace_id
    )
