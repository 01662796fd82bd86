"""The verb that stores memories. Each batch is screened, checked for echoes, written and indexed."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TypeAlias, TypeVar
from uuid import UUID

import numpy as np

from app.foundation.db.database import Database, again_after_deadlock
from app.foundation.db.session import Session
from app.foundation.models.protocols import EmbeddingProvider, TokenCounter
from app.foundation.values import frozen
from app.storage.index.models import StoredModel, active_model
from app.storage.index.vectors import embedded_text
from app.storage.memories import sources
from app.storage.memories.echoes import Echoes
from app.storage.memories.gate import INVALID, screened_all
from app.storage.memories.memory import GivenVector, MemoryRow, NewMemory, Objection, Rejection, Remembered, Screened
from app.storage.memories.store import TooManyWords, add_refusals, word_limit
from app.storage.memories.write import NUMBER, RunTraces, Written, write
from app.storage.tenants import store as workspaces
from app.storage.tenants.service import Workspaces
from app.storage.tenants.workspace import Workspace, configuration
from app.tracing import span

BATCH = 2_000
"""Most memories of a transaction. Indexing their words takes a third of the time per memory that batches of 500
take; all statements of a batch take 0.3 s of the server's time. The next batch is in memory at the same time."""
FIRST_BATCH = 250
"""Memories of the first transaction of a call; each next one has twice as many, up to BATCH. So a call of 1,000 is
written while it is still screened, which takes as long."""
BATCH_CHARACTERS = 4_000_000
"""Most characters of a batch's bodies: the batch is sent as one document, and memory holds several copies of it."""
T = TypeVar("T")
_Outcome: TypeAlias = UUID | Objection
"""The id of a memory that was stored, or the reason why it was not."""


def batch_sizes() -> Iterator[int]:
    """Yields the most memories of each batch of a call, without end."""
    size = FIRST_BATCH
    while True:
        yield min(size, BATCH)
        size *= 2


async def _batches(memories: Sequence[NewMemory]) -> AsyncIterator[Sequence[NewMemory]]:
    """Yields batches of at most `batch_sizes` memories and about BATCH_CHARACTERS."""
    start, characters, sizes = 0, 0, batch_sizes()
    most = next(sizes)
    for place, memory in enumerate(memories):
        if place > start and (place - start == most or characters + len(memory.body) > BATCH_CHARACTERS):
            yield memories[start:place]
            start, characters, most = place, 0, next(sizes)
        characters += len(memory.body)
    if memories:
        yield memories[start:]


async def _ahead(items: AsyncIterator[T]) -> AsyncGenerator[T]:
    """Yields each item while it waits for the next one."""

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


def _result_of(outcomes: Sequence[_Outcome], counts: Counter[str]) -> Remembered:
    return Remembered(
        ids=tuple(None if isinstance(outcome, Objection) else outcome for outcome in outcomes),
        stored=counts["stored"],
        updated=counts["updated"],
        unchanged=counts["unchanged"],
        rejected=tuple(
            Rejection(index=index, reason=outcome.message, code=outcome.code, details=outcome.details)
            for index, outcome in enumerate(outcomes)
            if isinstance(outcome, Objection)
        ),
    )


def _incomparable(item: Screened, model: StoredModel | None) -> Objection | None:
    """Returns the objection to a vector that cannot be compared with those of `model`."""
    reason = _reason_not_to_compare(item.memory.embedding, model)
    return None if reason is None else Objection(message=f"embedding.{reason}", code=INVALID)


def _reason_not_to_compare(given: GivenVector | None, model: StoredModel | None) -> str | None:
    if given is None:
        return None
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


async def _rows(session: Session, workspace: Workspace, batch: Sequence[Screened]) -> list[MemoryRow]:
    known = await sources.ensure(session, [item.memory.source for item in batch if item.memory.source is not None])
    return [
        item.row(
            source_id=None if item.memory.source is None else known[item.memory.source.kind, item.memory.source.uri],
            language=workspace.language if item.memory.language is None else configuration(item.memory.language),
        )
        for item in batch
    ]


@frozen
class WriteGate:
    """Stores memories."""

    database: Database
    counter: TokenCounter
    mask: bool = True
    """Masks secrets in what it stores."""
    provider: EmbeddingProvider | None = None
    """Finds echoes in other words, too."""
    runs: RunTraces | None = None
    """The notes about runs; needed if memories name runs."""

    async def remember(
        self, workspace: Workspace, memories: Sequence[NewMemory], *, known_first: bool = False
    ) -> Remembered:
        """Stores memories. Their words are indexed at once, their meaning when a worker has embedded them.

        A known text (same kind, source, ordinal, title and body) is not stored twice: the known memory gains the given
        tags and metadata, and takes the given score, date and details of an observation. It keeps its own values with
        `known_first`, or if another run says the same without a better score. It always keeps its first run.

        A memory is rejected with its reason if it cannot be stored, is worthless, instructs its reader, or repeats a
        memory that its run was given; such an echo counts as a use of the repeated memory. The others are stored. A
        memory that comes with a vector of the served model can be found by meaning at once.

        Raises:
            DatabaseUnavailable: earlier batches are stored, but no memory of the batch in progress.
        """
        outcomes, counts = list[_Outcome](), Counter[str]()
        async for part, counted in self._stored_batches(workspace, _batches(memories), known_first=known_first):
            outcomes += part
            counts += counted
        return _result_of(outcomes, counts)

    async def remember_batches(
        self, workspace: Workspace, batches: AsyncIterator[Sequence[NewMemory]]
    ) -> AsyncGenerator[Remembered]:
        """Stores memories that arrive in batches, as `remember` does; yields the outcome of each batch, in their order.

        It receives and screens the next batch while it writes one.
        """
        async with aclosing(self._stored_batches(workspace, batches)) as stored:
            async for outcomes, counts in stored:
                yield _result_of(outcomes, counts)

    async def remember_batch(self, workspace: Workspace, memories: Sequence[NewMemory]) -> Remembered:
        """Stores one batch, as `remember` does: at most BATCH memories and BATCH_CHARACTERS."""
        screened = await asyncio.to_thread(self._screen, memories)
        return _result_of(*await self._store_screened(workspace, screened))

    async def _stored_batches(
        self, workspace: Workspace, batches: AsyncIterator[Sequence[NewMemory]], *, known_first: bool = False
    ) -> AsyncGenerator[tuple[Sequence[_Outcome], Counter[str]]]:
        screened = (await asyncio.to_thread(self._screen, batch) async for batch in batches)
        async with aclosing(_ahead(screened)) as coming:
            async for batch in coming:
                yield await self._store_screened(workspace, batch, known_first=known_first)

    def _screen(self, memories: Sequence[NewMemory]) -> Sequence[Screened]:
        """Returns memories after the gate, with the tokens of those that passed it."""
        with span("remember.screen", memories=len(memories)):
            found = screened_all(memories, mask=self.mask)
            passed = [item.memory for item in found if item.objection is None]
            tokens = iter(self.counter.count_many([embedded_text(memory.title, memory.body) for memory in passed]))
        return [replace(item, tokens=next(tokens)) if item.objection is None else item for item in found]

    async def _store_screened(
        self, workspace: Workspace, batch: Sequence[Screened], *, known_first: bool = False
    ) -> tuple[Sequence[_Outcome], Counter[str]]:
        """Stores one batch; returns the outcome of each memory, and the numbers of stored, updated, unchanged ones.

        The memories of each user are written apart: what other users stored is not known there.
        """
        outcomes, counts = dict[int, _Outcome](), Counter[str]()
        users = [item.memory.user if item.objection is None else "" for item in batch]
        for user in dict.fromkeys(users):
            places = [place for place, of in enumerate(users) if of == user]
            own = await Workspaces(database=self.database).get_or_create(workspace.of(user))
            checked = await self._check(own, [batch[place] for place in places])
            passed = [item for item in checked if item.objection is None]
            stored = iter(await self._store(own, passed, counts, known_first=known_first))
            found = [item.objection or next(stored) for item in checked]
            await self._count_refusals(own, found)
            outcomes |= zip(places, found, strict=True)
        return [outcomes[place] for place in range(len(batch))], counts

    async def _check(self, workspace: Workspace, batch: Sequence[Screened]) -> Sequence[Screened]:
        """Returns the batch, with an objection to each echo and to each vector of another model."""
        # A run of a user was given nobody's memories too.
        seen = workspace.for_reading(workspace.user)
        with span("remember.echoes", memories=len(batch)):
            batch = await Echoes(database=self.database, provider=self.provider).note(seen, batch, self.runs)
        if any(item.memory.embedding is not None for item in batch):
            async with self.database.session(workspace, transaction=False) as session:
                model = await active_model(session)
            batch = [replace(item, objection=item.objection or _incomparable(item, model)) for item in batch]
        return batch

    async def _count_refusals(self, workspace: Workspace, outcomes: Sequence[_Outcome]) -> None:
        if refused := Counter(outcome.code for outcome in outcomes if isinstance(outcome, Objection)):
            async with self.database.session(workspace) as session:
                await add_refusals(session, refused)

    async def _store(
        self, workspace: Workspace, batch: Sequence[Screened], counts: Counter[str], *, known_first: bool
    ) -> Sequence[_Outcome]:
        """Stores a batch, in halves if the index cannot hold a text; returns each memory's id or objection."""
        try:
            with word_limit():
                written = await again_after_deadlock(lambda: self._write(workspace, batch, known_first=known_first))
        except TooManyWords:
            if len(batch) == 1:
                message = "body: has too many different words for the text index (1 MB of them); split it"
                return [Objection(message=message, code=INVALID)]
            middle = len(batch) // 2
            return [
                item
                for half in (batch[:middle], batch[middle:])
                for item in await self._store(workspace, half, counts, known_first=known_first)
            ]
        counts.update(written.counts)
        return written.ids

    async def _write(self, workspace: Workspace, batch: Sequence[Screened], *, known_first: bool) -> Written:
        if not batch:
            return Written([], Counter())
        with span("remember.write", memories=len(batch)):
            async with self.database.session(workspace) as session:
                rows = await _rows(session, workspace, batch)
                await workspaces.add_languages(session, workspace, {row.language for row in rows})
                return await write(session, rows, runs=self.runs, known_first=known_first)
