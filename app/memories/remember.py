"""The verb that stores memories."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple, TypeVar
from uuid import UUID

import numpy as np

from app.db.database import Database, again_after_deadlock
from app.db.session import Session
from app.index.models import StoredModel, active_model
from app.index.vectors import embedded_text
from app.memories import sources
from app.memories.echoes import note_echoes
from app.memories.gate import INVALID, Objection, Screened, screened
from app.memories.memory import GivenVector, MemoryRow, NewMemory, Rejection, Remembered, row_of
from app.memories.store import TooManyWords, add_refusals, word_limit
from app.memories.write import NUMBER, Counts, write
from app.models.protocols import EmbeddingProvider, TokenCounter
from app.workspaces import store as workspaces
from app.workspaces.resolve import made
from app.workspaces.workspace import Workspace, configuration

BATCH = 2_000
"""Memories a transaction: the word index takes so many at a third of what it takes for 500 (0.3 s of the server's time
for all that it takes to store them), and as many are held in memory while the batch before them is written."""
BATCH_CHARACTERS = 4_000_000
"""Characters of a batch's bodies: it is sent as one document, and held in memory a few times over."""
T = TypeVar("T")


class Door(NamedTuple):
    """The parts and settings that every batch of a call shares."""

    database: Database
    counter: TokenCounter
    workspace: Workspace
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
    workspace: Workspace,
    memories: Sequence[NewMemory],
    mask: bool = True,
    provider: EmbeddingProvider | None = None,
    known_first: bool = False,
) -> Remembered:
    """Store memories. Each is indexed by its words at once, by its meaning when a worker has embedded it.

    Known text (same kind, source, ordinal, title and body) is not stored twice: tags and metadata are added to what
    such a memory has, its score, date and an observation's details become those given here (or stay, with
    `known_first`, or where another run that was not judged better says it), and the run that first said it stays its
    run. What cannot be stored, would be worthless or instructs its reader is rejected with its reason, and so is what
    a run was given and says again: that counts as a use of the memory which it came from. The rest goes on. Secrets are
    masked unless `mask` is off.
    One that brings its vector, of the model that is served, is indexed by its meaning at once as well.
    With a `provider` an echo is also known in other words.

    Raises:
        DatabaseUnavailable: nothing of the batch in progress is stored; earlier batches are.
    """
    door = Door(database, counter, workspace, mask, provider, known_first)

    async def batches() -> AsyncIterator[Sequence[NewMemory]]:
        for batch in _batches(memories):
            yield batch

    return _together([done async for done in remember_batches(door, batches())])


async def remember_batches(door: Door, batches: AsyncIterator[Sequence[NewMemory]]) -> AsyncIterator[Remembered]:
    """Store memories that come in pieces, as `remember` does; yields the outcome of each piece, in their order.

    While one batch is written, the next is awaited and screened.
    """
    async with aclosing(_ahead(_screened_batches(door, batches))) as coming:
        async for batch in coming:
            door = await _with_workspace(door, batch)
            yield await _remembered(door, batch)


async def remember_batch(door: Door, memories: Sequence[NewMemory]) -> Remembered:
    """Store one batch, as `remember` does: at most BATCH memories and BATCH_CHARACTERS."""
    batch = await asyncio.to_thread(_screened, door, memories)
    return await _remembered(await _with_workspace(door, batch), batch)


async def _with_workspace(door: Door, batch: Sequence[object]) -> Door:
    """Returns the door with its workspace made, where there is anything to store."""
    return door._replace(workspace=await made(door.database, door.workspace)) if batch else door


async def _ahead(items: AsyncIterator[T]) -> AsyncGenerator[T]:
    """Yields each item, while the one after it is awaited."""

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
    """Stores one batch; returns what became of it."""
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
    await _count_refusals(door, rejected)
    return Remembered(
        ids=tuple(ids),
        stored=counts.stored,
        updated=counts.updated,
        unchanged=counts.unchanged,
        rejected=tuple(rejected),
    )


async def _noted(door: Door, batch: Sequence[Screened]) -> list[Screened]:
    """Returns the batch, with an objection to each echo and to each vector of another model."""
    noted = await note_echoes(door.database, door.provider, door.workspace, batch)
    if any(item.memory.embedding is not None for item in noted):
        async with door.database.session(door.workspace, transaction=False) as session:
            model = await active_model(session)
        noted = [_with_comparable_vector(item, model) for item in noted]
    return noted


def _with_comparable_vector(item: Screened, model: StoredModel | None) -> Screened:
    """Returns the memory, with an objection where its vector cannot be compared with those of `model`."""
    given = item.memory.embedding
    reason = None if given is None or item.objection is not None else _incomparable(given, model)
    return item if reason is None else replace(item, objection=Objection(message=f"embedding.{reason}", code=INVALID))


def _incomparable(given: GivenVector, model: StoredModel | None) -> str | None:
    if model is None:
        return "model: no model's vectors are served, so none are taken; leave the embedding out"
    if given.model != model.name:
        return f"model: is not {model.name}, whose vectors are served; embed by that model, or leave the embedding out"
    if len(given.numbers) != model.dimension * NUMBER.itemsize:
        found = len(given.numbers) / NUMBER.itemsize
        return f"vector: has {found:g} numbers; {model.name} has {model.dimension}"
    numbers = np.frombuffer(given.numbers, NUMBER)
    if not np.isfinite(numbers).all() or not numbers.any():
        return "vector: has no direction: every number must be finite, and one at least not zero"
    return None


def _together(parts: Sequence[Remembered]) -> Remembered:
    """Returns the outcome of all batches, as if they were one."""
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
    """Yields runs of at most BATCH memories and about BATCH_CHARACTERS."""
    start, characters = 0, 0
    for place, memory in enumerate(memories):
        if place > start and (place - start == BATCH or characters + len(memory.body) > BATCH_CHARACTERS):
            yield memories[start:place]
            start, characters = place, 0
        characters += len(memory.body)
    if memories:
        yield memories[start:]


async def _count_refusals(door: Door, rejected: Sequence[Rejection]) -> None:
    if counts := Counter(item.code for item in rejected):
        async with door.database.session(door.workspace) as session:
            await add_refusals(session, counts)


async def _stored(door: Door, batch: Sequence[_Ready], counts: Counts) -> list[UUID | Objection]:
    """Stores a batch; returns the id of each, or why it could not be indexed: then the halves are stored one by one."""
    try:
        with word_limit():
            return [*await again_after_deadlock(lambda: _store_batch(door, batch, counts))]
    except TooManyWords:
        if len(batch) == 1:
            message = "body: has too many different words for the text index (1 MB of them); split it"
            return [Objection(message=message, code=INVALID)]
    middle = len(batch) // 2
    halves = (batch[:middle], batch[middle:])
    return [item for half in halves for item in await _stored(door, half, counts)]


async def _store_batch(door: Door, batch: Sequence[_Ready], counts: Counts) -> list[UUID]:
    if not batch:
        return []
    async with door.database.session(door.workspace) as session:
        rows = await _rows(session, door.workspace, batch)
        await workspaces.add_languages(session, door.workspace, {row.language for row in rows})
        ids = await write(session, rows, written := Counts(), known_first=door.known_first)
    counts.add(written)
    return ids


async def _rows(session: Session, workspace: Workspace, batch: Sequence[_Ready]) -> list[MemoryRow]:
    memories = [item.screened.memory for item in batch]
    known = await sources.ensure(session, [memory.source for memory in memories if memory.source is not None])
    return [
        row_of(
            memory,
            source_id=None if memory.source is None else known[memory.source.kind, memory.source.uri],
            language=workspace.language if memory.language is None else configuration(memory.language),
            tokens=item.tokens,
            findings=item.screened.findings,
        )
        for memory, item in zip(memories, batch, strict=True)
    ]


def _rejection(index: int, objection: Objection) -> Rejection:
    return Rejection(index=index, reason=objection.message, code=objection.code, details=objection.details)
