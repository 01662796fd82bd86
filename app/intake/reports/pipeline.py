"""Embeds and writes windows of files, which overlap with reading; each file is stored whole or not at all."""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from uuid import UUID

import structlog
from msgspec import structs

from app.errors import EmbeddingUnavailable
from app.foundation.db.database import again_after_deadlock
from app.foundation.db.session import Session
from app.foundation.models.protocols import TokenCounter
from app.foundation.values import frozen
from app.intake.cases import store as judgements
from app.intake.cases.judgement import FoundJudgement
from app.intake.reports import store
from app.intake.reports.chunk import HEADING_SEPARATOR
from app.intake.reports.prepare import Prepared, path_tags, readable
from app.intake.reports.scan import ReportFile
from app.intake.reports.store import (
    CHANGED,
    MOVED,
    NEW,
    RETIRED,
    STOPS,
    UNCHANGED,
    FileOutcome,
    IngestionState,
    or_failure,
)
from app.storage.index import vectors as embeddings
from app.storage.index.embedding import cut, embed_passages
from app.storage.index.following import provider_of_model
from app.storage.index.indexing import enqueue_statistics, queue_for_vectors, reindex_memories
from app.storage.index.models import StoredModel, is_served
from app.storage.index.service import Embedder
from app.storage.index.vectors import Passages, embedded_text
from app.storage.links import store as links
from app.storage.memories import sources
from app.storage.memories.memory import MemoryRow
from app.storage.memories.sources import KnownFile, Matching, carry_out, known_parts, match_parts
from app.storage.tenants import store as workspaces
from app.storage.tenants.workspace import Workspace
from app.tracing import span


@frozen
class Vectors:
    """Vectors by content hash, and their model."""

    model: StoredModel | None = None
    found: Mapping[bytes, Passages] = field(default_factory=dict)


@frozen
class _Plan:
    """The changes that a window of files makes to the store."""

    files: Sequence[Prepared]
    """All files of the window."""
    sources: Mapping[str, KnownFile]
    """The known files by path; a path that is missing here is a new file's."""
    changed: Mapping[str, Prepared]
    """The files, by path, whose content differs from that of their source."""
    matching: Matching

    @property
    def outcomes(self) -> list[FileOutcome]:
        """The outcomes of the files, in their order."""
        stored = {row.memory_id: row.tokens for row in self.matching.new}
        return [
            self._outcome(file, [stored[row.memory_id] for row in file.rows if row.memory_id in stored])
            for file in self.files
        ]

    def _outcome(self, file: Prepared, tokens: Sequence[int]) -> FileOutcome:
        """Returns the outcome of a file; `tokens` are those of each of its new chunks."""
        source = self.sources.get(file.uri)
        known = source is not None and source.live and source.content_hash
        return FileOutcome(
            path=file.title,
            status=UNCHANGED if file.uri not in self.changed else CHANGED if known else NEW,
            chunks=len(file.rows),
            stored=len(tokens),
            tokens=sum(tokens),
            noise=file.noise,
            quarantined=sum(row.quarantined for row in file.rows),
            notes=file.notes,
            skipped=file.skipped,
        )


async def apply_files(state: IngestionState, files: Sequence[Prepared], vectors: Vectors) -> list[FileOutcome]:
    """Makes each file's source hold exactly its chunks, and returns the outcomes; a dry run writes nothing.

    All files are written in one transaction, or none. A chunk without a vector is queued for one.
    """
    if state.options.dry_run:
        async with state.database.session(state.workspace, transaction=False) as session:
            plan, pending = await _plan(session, files, state.known), 0
    else:
        with span("ingestion.write", files=len(files)):
            plan, pending = await again_after_deadlock(lambda: _write_plan(state, files, vectors))
    state.result.pending += pending
    return plan.outcomes


async def _write_plan(state: IngestionState, files: Sequence[Prepared], vectors: Vectors) -> tuple[_Plan, int]:
    """Carries out the plan for these files; returns it, and the number of chunks that were queued for vectors."""
    async with state.database.session(state.workspace) as session:
        locked = await sources.locked_files(session, {file.uri: file.title for file in files})
        plan = await _plan(session, files, locked)
        if not plan.changed:
            return plan, 0
        await _note(session, state.workspace, plan)
        pending = await _store_vectors(session, await carry_out(session, plan.matching), vectors)
        judged: dict[UUID | str, Sequence[FoundJudgement]] = {
            locked[file.uri].source_id: file.judgements for file in files if file.uri in plan.changed
        }
        await judgements.replace(session, judged)
        changed = {locked[uri].source_id: file for uri, file in plan.changed.items()}
        recording = frozenset(source_id for source_id, file in changed.items() if file.records_decision)
        await store.read_for_decisions(session, list(changed), recording=recording)
        await enqueue_statistics(session)
        return plan, pending


async def _plan(session: Session, files: Sequence[Prepared], known: Mapping[str, KnownFile]) -> _Plan:
    changed = {
        file.uri: file
        for file in files
        if (source := known.get(file.uri)) is None or not source.live or source.content_hash != file.content_hash
    }
    ids = {uri: known[uri].source_id for uri in changed if uri in known}
    chunks = await known_parts(session, list(ids.values()), kind="chunk")
    rows = [replace(row, source_id=ids.get(uri)) for uri, file in changed.items() for row in file.rows]
    return _Plan(files=files, sources=known, changed=changed, matching=match_parts(rows, chunks))


async def _note(session: Session, workspace: Workspace, plan: _Plan) -> None:
    held = [
        plan.sources[uri]._replace(content_hash=file.content_hash, title=file.title)
        for uri, file in plan.changed.items()
    ]
    await sources.keep_files(session, held)
    languages = {row.language for file in plan.changed.values() for row in file.rows}
    await workspaces.add_languages(session, workspace, languages)


async def _store_vectors(session: Session, rows: Sequence[MemoryRow], vectors: Vectors) -> int:
    """Stores the known vectors; returns the number of these memories that are queued for one."""
    ready = {row.memory_id: vectors.found[row.content_hash] for row in rows if row.content_hash in vectors.found}
    model = vectors.model if ready else None
    given = model is not None and await embeddings.write(session, model, ready)
    lacking = [row.memory_id for row in rows if not (given and row.memory_id in ready)]
    await queue_for_vectors(session, lacking)
    return len(lacking)


async def move(
    state: IngestionState,
    known: KnownFile,
    file: ReportFile,
    found: Sequence[FoundJudgement],
    *,
    over: KnownFile | None,
) -> FileOutcome:
    """Stores that a known file was moved, and that it replaced the file `over` at its new path."""
    retired = await rename(state, known, file, found, over=over)
    if over is not None:
        reason = f"{known.title} was moved over it"
        state.note(FileOutcome(path=over.uri, status=RETIRED, chunks=retired, reason=reason))
    return FileOutcome(path=str(file.shown), status=MOVED, reason=known.uri)


async def rename(
    state: IngestionState,
    known: KnownFile,
    file: ReportFile,
    found: Sequence[FoundJudgement],
    *,
    over: KnownFile | None = None,
) -> int:
    """Gives a known file its new path, title and tags; its chunks keep their ids, their ratings and their text.

    If the file has no title of its own, its chunks have its path as their title, and are indexed again. The earlier
    file at the new path, `over`, is retired. `found` has the file's judgements. Returns the number of live chunks that
    `over` had.
    """
    if state.options.dry_run:
        return 0
    async with state.database.session(state.workspace, transaction=False) as session:
        chunks = await store.live_chunks(session, known.source_id)
    old, new = readable(PurePosixPath(known.title)), readable(file.shown)
    called = [chunk for chunk in chunks if old != new and chunk.memory.metadata.get("trail", [])[:1] == [old]]
    retitled = [_row_with_title(chunk, new, state.counter) for chunk in called]
    ids = [chunk.memory_id for chunk in retitled]
    async with state.database.session(state.workspace) as session:
        retired = await store.retire(session, over.source_id) if over is not None else 0
        await sources.move_file(session, known, uri=file.uri, title=str(file.shown), tags=path_tags(file.shown))
        await judgements.replace(session, {known.source_id: found})
        await store.read_for_decisions(session, [known.source_id])
        if ids:
            await sources.retitle_chunks(session, retitled)
            await reindex_memories(session, ids)
            await links.forget_found(session, ids)
    state.retitled += ids
    return retired


def _row_with_title(chunk: MemoryRow, name: str, counter: TokenCounter) -> MemoryRow:
    heading_path = [name, *chunk.memory.metadata["trail"][1:]]
    title = HEADING_SEPARATOR.join(heading_path)
    memory = structs.replace(chunk.memory, title=title, metadata={"trail": heading_path})
    return replace(chunk, memory=memory, tokens=counter.count(embedded_text(title, memory.body)))


async def retire(state: IngestionState, file: KnownFile, *, reason: str = "") -> FileOutcome:
    """Retires a file that was deleted, or states nothing any more."""
    if state.options.dry_run:
        return FileOutcome(path=file.uri, status=RETIRED, reason=reason)
    async with state.database.session(state.workspace) as session:
        chunks = await store.retire(session, file.source_id)
    return FileOutcome(path=file.uri, status=RETIRED, chunks=chunks, reason=reason)


WINDOW = 128
"""Chunks that are embedded and written together: seconds of work, after which they are found. Windows of 64 chunks
take 3 % more of a processor's time than those of 256, because fewer texts of similar length share a run."""

_SLICED = 512
"""Chunks of a file from which on it is stored, and found by its words, before its vectors are made in slices: those of
3,000 chunks take minutes on two cores."""

_NO_VECTORS = Vectors()

logger = structlog.get_logger()


class _Embedding(NamedTuple):
    """A window whose vectors are being made."""

    window: Sequence[Prepared]
    vectors: asyncio.Task[Vectors]


class Pipeline:
    """Embeds one window of chunks while the one before is written and the files of the next are read and chunked.

    The embedding of the next window begins before that of the current one ends, so that no core is idle.
    """

    def __init__(self, state: IngestionState) -> None:
        self._state = state
        self._window: list[Prepared] = []
        self._embeddings: deque[_Embedding] = deque()
        """At most two windows, the earlier one first."""
        self._writing: asyncio.Task[None] | None = None

    async def add(self, prepared: Prepared) -> None:
        """Adds a file; passes a full window on. A large file is stored at once, after the files before it."""
        if len(prepared.rows) > _SLICED:
            await self.finish()
            await _apply_window(self._state, [prepared], _NO_VECTORS, sliced=True)
            return
        self._window.append(prepared)
        if sum(len(item.rows) for item in self._window) >= WINDOW:
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
        self._embeddings.append(_Embedding(window, asyncio.create_task(vectors_of(self._state, window))))
        if len(self._embeddings) > 1:
            await self._write_next()

    async def _write_next(self) -> None:
        """Waits until the first window is embedded, then starts to write it."""
        embedding = self._embeddings[0]
        await _wait_for_all(embedding.vectors, self._writing)
        self._embeddings.popleft()
        vectors = embedding.vectors.result()
        self._writing = asyncio.create_task(_apply_window(self._state, embedding.window, vectors))


async def _apply_window(
    state: IngestionState, window: Sequence[Prepared], vectors: Vectors, *, sliced: bool = False
) -> None:
    """Writes a window together; where that fails, it writes the files one by one, and names those that fail."""
    try:
        outcomes = await apply_files(state, window, vectors)
    except STOPS:
        raise
    except Exception:  # noqa: BLE001 - the error of a file is named when it is written alone
        outcomes = [await or_failure(file.title, apply_file(state, file, vectors)) for file in window]
    for outcome in outcomes:
        if sliced and outcome.stored and not state.options.dry_run:
            state.result.sliced[outcome.path] = outcome.stored
        state.note(outcome)


async def apply_file(state: IngestionState, prepared: Prepared, vectors: Vectors) -> FileOutcome:
    """Writes one file alone, as `apply_files` does."""
    (outcome,) = await apply_files(state, [prepared], vectors)
    return outcome


async def _wait_for_all(*tasks: asyncio.Task[Any] | None) -> None:
    """Waits for all tasks, or raises the error of the first that fails; does not cancel them."""
    running = [task for task in tasks if task is not None]
    if not running:
        return
    done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_EXCEPTION)
    for task in done:
        task.result()


async def vectors_of(state: IngestionState, window: Sequence[Prepared]) -> Vectors:
    """Returns a vector for each text of the window. A text is not embedded again if its vector is stored.

    Each window looks up the model, because the store may move to another one during a long ingestion.
    """
    rows = {row.content_hash: row for prepared in window for row in prepared.rows}
    if state.options.dry_run or not rows:
        return _NO_VECTORS
    model = await Embedder(database=state.database, provider=state.provider).serving_model()
    speaker = None if model is None else provider_of_model(state.provider, model.name)
    if model is None or speaker is None:
        return _NO_VECTORS
    found = await _stored_vectors(state, model, list(rows.values()))
    fresh = [row for digest, row in rows.items() if digest not in found]
    try:
        with span("ingestion.embed", chunks=len(fresh)):
            texts = await cut(speaker, [(row.memory.title, row.memory.body) for row in fresh])
            made = await embed_passages(speaker, texts)
    except Exception as error:
        state.result.degraded = str(error) if isinstance(error, EmbeddingUnavailable) else repr(error)
        logger.warning("stored without vectors", chunks=len(fresh), reason=state.result.degraded, exc_info=True)
    else:
        found |= {row.content_hash: parts for row, parts in zip(fresh, made, strict=True)}
    return Vectors(model=model, found=found)


async def _stored_vectors(
    state: IngestionState, model: StoredModel, rows: Sequence[MemoryRow]
) -> dict[bytes, Passages]:
    async with state.database.session(state.workspace) as session:
        if not await is_served(session, model):
            return {}
        return await store.known_vectors(session, model, rows)
