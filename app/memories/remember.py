"""The verb that stores memories."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from sqlalchemy import Row
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.engine import Database, again_after_deadlock, sqlstate_of
from app.db.queue import enqueue
from app.db.waiting import VECTORS, wait_for_links
from app.embeddings import store as vectors
from app.embeddings.copying import copy_new
from app.embeddings.provider import EmbeddingProvider, TokenCounter
from app.embeddings.store import StoredModel
from app.errors import DatabaseUnavailable
from app.links import store as links
from app.memories import details, given_vectors, lexical_index, sources, store
from app.memories.echoes import note_echoes
from app.memories.memory import GivenVector, NewMemory, Rejection, Remembered
from app.memories.refusals import count_refusals
from app.memories.scored_text import embedded_text
from app.memories.screening import INVALID, Objection, Screened, screened
from app.memories.store import Identity, MemoryRow, row_of
from app.workspaces import store as workspaces
from app.workspaces.language import configuration
from app.workspaces.workspace import Workspace, checked_name

BATCH = 2_000
"""Memories a transaction: the word index takes so many at a third of what it takes for 500 (0.3 s of the server's time
for all that it takes to store them), and as many are held in memory while the batch before them is written."""
BATCH_CHARACTERS = 4_000_000
"""Of a batch's bodies: it is sent as one document, and held in memory a few times over."""
TSVECTOR_TOO_LARGE = "54000"
"""SQLSTATE program_limit_exceeded."""
ATTEMPTS = 3
"""To find or insert what others insert and retire at the same moment."""


T = TypeVar("T")


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


class Door(NamedTuple):
    """What every batch of a call shares."""

    database: Database
    counter: TokenCounter
    workspace: str
    language: str
    """Of a workspace which this call makes."""
    mask: bool = True
    provider: EmbeddingProvider | None = None
    known_first: bool = False


class _Ready(NamedTuple):
    """A memory as it may be stored, and its length in tokens."""

    screened: Screened
    tokens: int


class _Came(NamedTuple):
    """Vectors that came with memories."""

    model: StoredModel
    """The one that is served and made them."""
    vectors: dict[UUID, GivenVector]


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
    One that brings its vector, of the model that is served, is findable by its meaning at once as well.
    `language` is that of a workspace which this call makes. With a `provider` an echo is also known in other words.

    Raises:
        InvalidInput: the workspace may not be called that.
        DatabaseUnavailable: nothing of the batch that was under way is stored; earlier batches are.
    """
    door = Door(database, counter, workspace, language, mask, provider, known_first)

    async def batches() -> AsyncIterator[Sequence[NewMemory]]:
        for batch in _batches(memories):
            yield batch

    return _together([done async for done in remember_batches(door, batches())])


async def remember_batches(door: Door, batches: AsyncIterator[Sequence[NewMemory]]) -> AsyncIterator[Remembered]:
    """`remember` for what comes in pieces: what became of each, in their order.

    While one batch is written, the next is awaited and screened.
    """
    checked_name(door.workspace)
    async with aclosing(_ahead(_screened_batches(door, batches))) as coming:
        async for batch in coming:
            yield await _remembered(door, batch)


async def remember_batch(door: Door, memories: Sequence[NewMemory]) -> Remembered:
    """`remember` for what is one batch: at most BATCH memories and BATCH_CHARACTERS."""
    checked_name(door.workspace)
    return await _remembered(door, await asyncio.to_thread(_screened, door, memories))


async def _ahead(items: AsyncIterator[T]) -> AsyncGenerator[T]:
    """Each item, while the one after it is awaited."""

    async def following() -> T | None:
        return await anext(items, None)

    coming = asyncio.create_task(following())
    try:
        while (item := await coming) is not None:
            coming = asyncio.create_task(following())
            yield item
    finally:
        coming.cancel()
        await asyncio.gather(coming, return_exceptions=True)


async def _screened_batches(door: Door, batches: AsyncIterator[Sequence[NewMemory]]) -> AsyncIterator[Sequence[_Ready]]:
    async for batch in batches:
        yield await asyncio.to_thread(_screened, door, batch)


def _screened(door: Door, memories: Sequence[NewMemory]) -> Sequence[_Ready]:
    found = [screened(memory, mask=door.mask) for memory in memories]
    kept = [item.memory for item in found if item.objection is None]
    tokens = iter(door.counter.count_many([embedded_text(memory.title, memory.body) for memory in kept]))
    return [_Ready(item, next(tokens) if item.objection is None else 0) for item in found]


async def _remembered(door: Door, given: Sequence[_Ready]) -> Remembered:
    """What became of one batch."""
    ids: list[UUID | None] = [None] * len(given)
    rejected: list[Rejection] = []
    counts = Counts()
    noted = await _noted(door, [item.screened for item in given])
    batch = [_Ready(item, tokens) for item, (_, tokens) in zip(noted, given, strict=True)]
    kept = [item for item in batch if item.screened.objection is None]
    stored = iter(await _stored(door, kept, counts))
    for index, item in enumerate(batch):
        outcome = item.screened.objection or next(stored)
        if isinstance(outcome, Objection):
            rejected.append(_rejection(index, outcome))
        else:
            ids[index] = outcome
    await count_refusals(door.database, door.workspace, door.language, rejected)
    return Remembered(
        ids=tuple(ids),
        stored=counts.stored,
        updated=counts.updated,
        unchanged=counts.unchanged,
        rejected=tuple(rejected),
    )


async def _noted(door: Door, batch: Sequence[Screened]) -> list[Screened]:
    """With an objection to each memory that only the store can tell is none: echoes, and vectors of another model."""
    noted = await note_echoes(door.database, door.provider, door.workspace, batch)
    if any(item.memory.embedding is not None for item in noted):
        async with door.database.statements() as connection:
            noted = given_vectors.checked(noted, await vectors.active_model(connection))
    return noted


def _together(parts: Sequence[Remembered]) -> Remembered:
    """What became of all batches, as of one."""
    starts = accumulate((len(part.ids) for part in parts), initial=0)
    return Remembered(
        ids=tuple(memory_id for part in parts for memory_id in part.ids),
        stored=sum(part.stored for part in parts),
        updated=sum(part.updated for part in parts),
        unchanged=sum(part.unchanged for part in parts),
        rejected=tuple(
            replace(item, index=start + item.index)
            for part, start in zip(parts, starts, strict=False)
            for item in part.rejected
        ),
    )


def _batches(memories: Sequence[NewMemory]) -> Iterator[Sequence[NewMemory]]:
    """Runs of at most BATCH memories and about BATCH_CHARACTERS."""
    start, characters = 0, 0
    for place, memory in enumerate(memories):
        if place > start and (place - start == BATCH or characters + len(memory.body) > BATCH_CHARACTERS):
            yield memories[start:place]
            start, characters = place, 0
        characters += len(memory.body)
    if memories:
        yield memories[start:]


async def _stored(door: Door, batch: Sequence[_Ready], counts: Counts) -> list[UUID | Objection]:
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


async def _store_batch(door: Door, batch: Sequence[_Ready], counts: Counts) -> list[UUID]:
    if not batch:
        return []
    async with door.database.transaction() as connection:
        target = await workspaces.ensure(connection, door.workspace, configuration(door.language))
        rows = await _rows(connection, target, batch)
        await workspaces.add_languages(connection, target, {row.language for row in rows})
        ids = await write(connection, target, rows, written := Counts(), known_first=door.known_first)
    counts.add(written)
    return ids


async def _rows(connection: AsyncConnection, target: Workspace, batch: Sequence[_Ready]) -> list[MemoryRow]:
    memories = [item.screened.memory for item in batch]
    references = [memory.source for memory in memories if memory.source is not None]
    known = await sources.ensure(connection, target.workspace_id, references)
    return [
        row_of(
            memory,
            source_id=None if memory.source is None else known[memory.source.kind, memory.source.uri],
            language=target.language if memory.language is None else configuration(memory.language),
            tokens=item.tokens,
            findings=item.screened.findings,
        )
        for memory, item in zip(memories, batch, strict=True)
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
        came = await _with_vectors(connection, list(fresh.values()))
        await make_findable(connection, workspace_id, sorted(row.memory_id for row in fresh.values()), came)
    await _complete(connection, workspace_id, [row for row in rows if row.identity in known], ids)
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


async def make_findable(
    connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID], came: _Came | None = None
) -> None:
    """Index new live memories by their words, and by the vectors that came with them, if any; ask a worker for the
    vectors of the others and for fresh statistics."""
    await lexical_index.index(connection, workspace_id, ids)
    if came is not None:
        await _write_new(connection, workspace_id, came)
    lacking = ids if came is None else [memory_id for memory_id in ids if memory_id not in came.vectors]
    if lacking:
        await vectors.wait_for_vectors(connection, workspace_id, lacking)
        await enqueue(connection, "embed_waiting", lock="embed_waiting")
    await enqueue_statistics(connection, workspace_id)


async def _write_new(connection: AsyncConnection, workspace_id: int, came: _Came) -> None:
    """The vectors of memories that this transaction has made."""
    ids, matrix = list(came.vectors), given_vectors.matrix(list(came.vectors.values()))
    await copy_new(connection, came.model, workspace_id, ids, matrix)
    await wait_for_links(connection, workspace_id, ids, step=VECTORS)
    await enqueue(connection, "index_vectors", lock="index_vectors")


async def _complete(
    connection: AsyncConnection, workspace_id: int, rows: Sequence[MemoryRow], ids: Mapping[Identity, UUID]
) -> None:
    """Known memories that still wait for a vector get the one that came now."""
    came = await _with_vectors(connection, rows)
    if came is None:
        return
    given = {ids[row.identity]: row.memory.embedding for row in rows if row.memory.embedding is not None}
    lacking = await vectors.lacking_among(connection, workspace_id, list(given))
    ready = {memory_id: vector for memory_id, vector in given.items() if memory_id in lacking}
    if ready:
        literals = vectors.as_literals(given_vectors.matrix(list(ready.values())))
        await vectors.write(connection, came.model, workspace_id, list(ready), literals)


async def _with_vectors(connection: AsyncConnection, rows: Sequence[MemoryRow]) -> _Came | None:
    """The vectors that came with these; None where none came, or the store has moved to another model meanwhile."""
    given = {row.memory_id: row.memory.embedding for row in rows if row.memory.embedding is not None}
    model = await vectors.active_model(connection, held=True) if given else None
    if model is None or any(item.model != model.name for item in given.values()):
        return None
    return _Came(model, given)


async def make_findable_anew(connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID]) -> None:
    """The same for live memories whose text has changed: no vector and no link of what they said before stays."""
    await vectors.drop(connection, workspace_id, ids)
    await make_findable(connection, workspace_id, ids)
    await links.forget_found(connection, workspace_id, ids)


async def enqueue_statistics(connection: AsyncConnection, workspace_id: int) -> None:
    """Ask a worker to take the workspace's lexical statistics anew, should they have become stale."""
    await enqueue(
        connection, "refresh_statistics", lock=f"refresh_statistics:{workspace_id}", workspace_id=workspace_id
    )
