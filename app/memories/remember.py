"""The verb that stores memories."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple, TypeVar
from uuid import UUID

from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.engine import Database, again_after_deadlock, sqlstate_of
from app.index import indexing as given_vectors
from app.index import vectors
from app.index.vectors import embedded_text
from app.memories import sources
from app.memories.echoes import note_echoes
from app.memories.gate import INVALID, Objection, Screened, screened
from app.memories.memory import NewMemory, Rejection, Remembered
from app.memories.refusals import count_refusals
from app.memories.store import MemoryRow, row_of
from app.memories.write import Counts, write
from app.models.protocols import EmbeddingProvider, TokenCounter
from app.workspaces import store as workspaces
from app.workspaces.languages import configuration
from app.workspaces.workspace import Workspace, checked_name

BATCH = 2_000
"""Memories a transaction: the word index takes so many at a third of what it takes for 500 (0.3 s of the server's time
for all that it takes to store them), and as many are held in memory while the batch before them is written."""
BATCH_CHARACTERS = 4_000_000
"""Of a batch's bodies: it is sent as one document, and held in memory a few times over."""
TSVECTOR_TOO_LARGE = "54000"
"""SQLSTATE program_limit_exceeded."""
T = TypeVar("T")


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
    `known_first`, or where another run that was not judged better says it), and the run that first said it stays its
    run. What cannot be stored, would be worthless or instructs its reader is rejected with its reason, and so is what
    a run was given and says again: that counts as a use of the memory which it came from. The rest goes on. Secrets are
    masked unless `mask` is off.
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
