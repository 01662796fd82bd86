"""Embeds and writes windows of chunks; reading, embedding and writing of different windows overlap."""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import structlog

from app.errors import EmbeddingUnavailable, QuotaReached
from app.intake.reports import store
from app.intake.reports.apply import Vectors, apply
from app.intake.reports.outcome import IngestionState
from app.intake.reports.prepare import Prepared
from app.storage.index.embedding import cut, embed_passages, serving_model
from app.storage.index.models import StoredModel, is_served
from app.storage.index.reembed import provider_of_model
from app.storage.index.vectors import Passages
from app.storage.memories.memory import MemoryRow
from app.storage.tenants.service import check_room
from app.tracing import span

_WINDOW = 512
"""Chunks that are embedded and written together: many enough that texts of similar length share a run."""
FIRST_WINDOW = 128
"""Chunks of an ingestion's first window. It is small, because the model is idle until it is chunked."""

_NO_VECTORS = Vectors()

logger = structlog.get_logger()


class _Embedding(NamedTuple):
    """A window whose vectors are being made."""

    window: Sequence[Prepared]
    vectors: asyncio.Task[Vectors]

    @property
    def digests(self) -> set[bytes]:
        """The content hashes of its chunks."""
        return {row.content_hash for prepared in self.window for row in prepared.rows}


class Pipeline:
    """Embeds one window of chunks while the one before is written and the files of the next are read and chunked.

    The embedding of the next window begins before that of the current one ends, so that no core is idle.
    """

    def __init__(self, state: IngestionState) -> None:
        self._state = state
        self._window: list[Prepared] = []
        self._size = FIRST_WINDOW
        self._embeddings: deque[_Embedding] = deque()
        """At most two windows, the earlier one first."""
        self._vectors = _NO_VECTORS
        """The vectors of the window that is being written."""
        self._writing: asyncio.Task[None] | None = None

    async def add(self, prepared: Prepared) -> None:
        """Adds a file; passes a full window on."""
        self._window.append(prepared)
        if sum(len(item.rows) for item in self._window) >= self._size:
            self._size = _WINDOW
            await self._hand_on()

    async def finish(self) -> None:
        """Embeds and writes the remaining chunks."""
        if self._window:
            await self._hand_on()
        while self._embeddings:
            await self._write_next()
        await _wait_for_all(self._writing)

    async def abandon(self) -> None:
        """Stops embedding and writing, after the write in progress has ended.

        No task of the pipeline remains when this returns. Cancelling this call also cancels the write.
        """
        for embedding in self._embeddings:
            embedding.vectors.cancel()
        left = [embedding.vectors for embedding in self._embeddings]
        writing = [] if self._writing is None else [self._writing]
        await asyncio.gather(*left, *writing, return_exceptions=True)

    async def _hand_on(self) -> None:
        window, self._window = self._window, []
        coming = self._embeddings[-1] if self._embeddings else None
        vectors = asyncio.create_task(vectors_of(self._state, window, self._vectors, coming))
        self._embeddings.append(_Embedding(window, vectors))
        if coming is not None:
            await self._write_next()

    async def _write_next(self) -> None:
        """Waits until the first window is embedded, then starts to write it."""
        embedding = self._embeddings[0]
        await _wait_for_all(embedding.vectors, self._writing)
        self._embeddings.popleft()
        self._vectors = embedding.vectors.result()
        self._writing = asyncio.create_task(_apply_window(self._state, embedding.window, self._vectors))


async def _apply_window(state: IngestionState, window: Sequence[Prepared], vectors: Vectors) -> None:
    """Writes a window. Where the workspace has no room for all of it, it writes the files that fit, one by one."""
    try:
        await apply(state, window, vectors)
    except QuotaReached:
        for prepared in window:
            try:
                await check_room(state.intake.database, state.intake.workspace)
                await apply(state, [prepared], vectors)
            except QuotaReached as error:
                state.note_no_room(prepared.title, error)


async def _wait_for_all(*tasks: asyncio.Task[Any] | None) -> None:
    """Waits for all tasks, or raises the error of the first that fails; does not cancel them."""
    running = [task for task in tasks if task is not None]
    if not running:
        return
    done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_EXCEPTION)
    for task in done:
        task.result()


async def vectors_of(
    state: IngestionState, window: Sequence[Prepared], written: Vectors = _NO_VECTORS, coming: _Embedding | None = None
) -> Vectors:
    """Returns a vector for each text of the window.

    A text is not embedded again if its vector is stored, was made for the window that is being `written`, or is
    being made for the window before this one, which is still `coming`.

    Each window looks up the model, because the store may move to another one during a long ingestion.
    """
    rows = {row.content_hash: row for prepared in window for row in prepared.rows}
    if state.intake.dry_run:
        return _NO_VECTORS
    with suppress(QuotaReached):
        return await _made_vectors(state, rows, written, coming)
    # Nothing is embedded that has no room; what still fits is embedded later.
    return _NO_VECTORS


async def _made_vectors(
    state: IngestionState, rows: Mapping[bytes, MemoryRow], written: Vectors, coming: _Embedding | None
) -> Vectors:
    await check_room(state.intake.database, state.intake.workspace)
    model = await serving_model(state.intake.database, state.intake.provider)
    speaker = None if model is None else provider_of_model(state.intake.provider, model.name)
    if model is None or speaker is None or not rows:
        return _NO_VECTORS
    repeated = rows.keys() & (coming.digests if coming is not None else set[bytes]())
    found = written.of(model, rows.keys() - repeated)
    missing = [row for digest, row in rows.items() if digest not in found and digest not in repeated]
    found |= await _stored_vectors(state, model, missing)
    fresh = [row for row in missing if row.content_hash not in found]
    try:
        with span("ingestion.embed", chunks=len(fresh)):
            texts = await cut(speaker, [(row.memory.title, row.memory.body) for row in fresh])
            made = await embed_passages(speaker, texts)
    except EmbeddingUnavailable as error:
        state.degraded = str(error)
        logger.warning("stored without vectors", chunks=len(fresh), reason=str(error))
    else:
        found |= {row.content_hash: parts for row, parts in zip(fresh, made, strict=True)}
    if coming is not None and repeated:
        found |= (await coming.vectors).of(model, repeated)
    return Vectors(model=model, found=found)


async def _stored_vectors(
    state: IngestionState, model: StoredModel, rows: Sequence[MemoryRow]
) -> dict[bytes, Passages]:
    async with state.intake.database.session(state.intake.workspace) as session:
        if not await is_served(session, model):
            return {}
        return await store.known_vectors(session, model, rows)
