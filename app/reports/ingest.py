"""The verb that takes report files in."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from uuid import UUID

import structlog

from app.db.engine import Database
from app.embeddings.backfill import build_indexes, embed_waiting, serving_model
from app.embeddings.following import pinned
from app.embeddings.provider import EmbeddingProvider, TokenCounter
from app.embeddings.store import StoredModel, as_literals, is_served
from app.errors import EmbeddingUnavailable, InvalidInput
from app.memories import lexical_index
from app.memories.admission import too_long_uri, unstorable
from app.memories.scored_text import embedded_text
from app.memories.store import MemoryRow
from app.reports import store
from app.reports.files import SUFFIXES, Discovery, ReportFile, UnreadableFile, discover, gone, read
from app.reports.log import log_ingestion
from app.reports.outcome import FAILED, MOVED, RETIRED, UNCHANGED, FileOutcome, Ingestion
from app.reports.prepare import Prepared, file_hash, prepare
from app.reports.rename import rename
from app.reports.store import KnownFile
from app.reports.write import foreseen, write_files
from app.workspaces import store as workspaces
from app.workspaces.language import check_language, configuration
from app.workspaces.workspace import Workspace, checked_name

WINDOW = 512
"""Chunks embedded together, so that there are texts of like length to share a run, and written together."""
FIRST_WINDOW = 128
"""Of an ingestion: the model has nothing to do before it is chunked."""
NO_WORKSPACE = Workspace(workspace_id=0, name="", language="", languages=(), document_count=0, mean_length=0)
"""What a dry run looks into where nothing was ever written."""

OnProgress = Callable[[int, int, str], None]
"""Called with (files done, files found, path)."""

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Vectors:
    """Vectors of a window's chunks by content hash, and the model that they are of."""

    model: StoredModel | None = None
    literals: Mapping[bytes, str] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class _Run:
    """One ingestion under way."""

    database: Database
    provider: EmbeddingProvider
    counter: TokenCounter
    target: Workspace
    language: str
    max_file_bytes: int
    mask: bool
    dry_run: bool
    total: int = 0
    on_progress: OnProgress = lambda _done, _total, _path: None
    known: dict[str, KnownFile] = field(default_factory=dict)
    """Files by path: the live one, or else the one retired last."""
    by_hash: dict[bytes, list[KnownFile]] = field(default_factory=dict)
    """Live files whose path is empty now, by content: where a moved file came from."""
    outcomes: list[FileOutcome] = field(default_factory=list)
    retitled: list[UUID] = field(default_factory=list)
    """Chunks that wait for the vector of their new title."""
    waiting: int = 0
    degraded: str = ""

    def note(self, outcome: FileOutcome) -> None:
        self.outcomes.append(outcome)
        self.on_progress(len(self.outcomes), max(self.total, len(self.outcomes)), outcome.path)


async def ingest(  # noqa: PLR0913 - one an option of the command
    database: Database,
    provider: EmbeddingProvider,
    counter: TokenCounter,
    *,
    workspace: str,
    language: str | None = None,
    default_language: str = "english",
    paths: Sequence[Path],
    max_file_bytes: int,
    mask: bool = True,
    dry_run: bool = False,
    on_progress: OnProgress = lambda _done, _total, _path: None,
) -> Ingestion:
    """Make the store hold what the report files below `paths` say now.

    Unchanged files are not embedded again; a changed file keeps the chunks whose text did not change; a moved file is
    recognised by its content; what was deleted below these paths is retired. A file that cannot be taken in is named
    with its reason, keeps what was stored of it, and does not stop the rest. Files are written together,
    each of them whole or not at all. Whoever cancels it waits for the write under way; nothing more is embedded.

    `language` is that of the files, None for the workspace's; `default_language` that of a workspace made here.

    Raises:
        InvalidInput: the workspace may not be called that, or there is no such language.
        DatabaseUnavailable: files written before stay; running it again finishes.
    """
    started = time.perf_counter()
    check_language(language)
    target = await _workspace(database, checked_name(workspace), default_language, dry_run=dry_run)
    run = _Run(
        database=database,
        provider=provider,
        counter=counter,
        target=target,
        language=target.language if language is None else configuration(language),
        max_file_bytes=max_file_bytes,
        mask=mask,
        dry_run=dry_run,
        on_progress=on_progress,
    )
    await _take_in(run, await asyncio.to_thread(discover, paths))
    if not dry_run and (run.retitled or any(outcome.status not in {UNCHANGED, FAILED} for outcome in run.outcomes)):
        await _settle(run)
    return await _logged(run, started)


async def ingest_content(
    database: Database,
    provider: EmbeddingProvider,
    counter: TokenCounter,
    *,
    workspace: str,
    language: str | None = None,
    default_language: str = "english",
    path: str,
    content: bytes,
    max_file_bytes: int,
    mask: bool = True,
) -> FileOutcome:
    """Take in one file's content under a name of the caller's, as `ingest` does a file.

    Raises:
        InvalidInput: the name or the content cannot be taken; the message says why.
        DatabaseUnavailable: nothing of it is stored.
    """
    started = time.perf_counter()
    check_language(language)
    shown = _checked_path(path)
    if len(content) > max_file_bytes:
        raise InvalidInput("content", f"is larger than {max_file_bytes:,} bytes; split it")
    target = await _workspace(database, checked_name(workspace), default_language, dry_run=False)
    run = _Run(
        database=database,
        provider=provider,
        counter=counter,
        target=target,
        language=target.language if language is None else configuration(language),
        max_file_bytes=max_file_bytes,
        mask=mask,
        dry_run=False,
    )
    try:
        prepared = await asyncio.to_thread(
            prepare, content, uri=str(shown), shown=shown, language=run.language, counter=counter, mask=mask
        )
    except InvalidInput as error:
        raise InvalidInput("content", error.message) from error
    await _write(run, [prepared], await _vectors(run, [prepared]))
    await _logged(run, started)
    return run.outcomes[0]


async def _logged(run: _Run, started: float) -> Ingestion:
    ingestion = Ingestion(
        outcomes=tuple(run.outcomes),
        seconds=time.perf_counter() - started,
        dry_run=run.dry_run,
        waiting=run.waiting,
        degraded=run.degraded,
    )
    await log_ingestion(run.database, run.target.workspace_id, ingestion)
    return ingestion


def _checked_path(path: str) -> PurePosixPath:
    shown = PurePosixPath(path.strip().lstrip("/"))
    for reason in unstorable(path, "path"):
        raise InvalidInput("path", reason.removeprefix("path: "))
    if shown.suffix.lower() not in SUFFIXES or ".." in shown.parts:
        raise InvalidInput("path", "names a .md or .json file by a relative path without ..")
    if reason := too_long_uri(path):
        raise InvalidInput("path", reason)
    return shown


async def _workspace(database: Database, name: str, language: str, *, dry_run: bool) -> Workspace:
    async with database.transaction() as connection:
        if dry_run:
            return await workspaces.find(connection, name) or NO_WORKSPACE
        return await workspaces.ensure(connection, name, configuration(language))


class _Embedding(NamedTuple):
    """A window whose vectors are being made."""

    window: Sequence[Prepared]
    vectors: asyncio.Task[_Vectors]

    @property
    def digests(self) -> set[bytes]:
        """The content hashes of its chunks."""
        return {row.content_hash for prepared in self.window for row in prepared.rows}


class _Pipeline:
    """Embeds one window of chunks while the one before is written and the files of the next are read and chunked.

    The next begins to be embedded before one is done, so that no core waits between them.
    """

    def __init__(self, run: _Run) -> None:
        self._run = run
        self._window: list[Prepared] = []
        self._size = FIRST_WINDOW
        self._embeddings: deque[_Embedding] = deque()
        """Two at most, the earlier one first."""
        self._vectors = _Vectors()
        """Of the window that is written at this moment."""
        self._writing: asyncio.Task[None] | None = None

    async def add(self, prepared: Prepared) -> None:
        """Take a file in; a full window is handed on."""
        self._window.append(prepared)
        if sum(len(item.rows) for item in self._window) >= self._size:
            self._size = WINDOW
            await self._hand_on()

    async def finish(self) -> None:
        """Embed and write what is left."""
        if self._window:
            await self._hand_on()
        while self._embeddings:
            await self._write_next()
        await _ended(self._writing)

    async def abandon(self) -> None:
        """Embed and write nothing more; the write under way comes to its end first.

        No task of the pipeline is left once this returns, or is itself cancelled: that cancels the write, too.
        """
        for embedding in self._embeddings:
            embedding.vectors.cancel()
        left = [embedding.vectors for embedding in self._embeddings]
        writing = [] if self._writing is None else [self._writing]
        await asyncio.gather(*left, *writing, return_exceptions=True)

    async def _hand_on(self) -> None:
        window, self._window = self._window, []
        coming = self._embeddings[-1] if self._embeddings else None
        vectors = asyncio.create_task(_vectors(self._run, window, self._vectors, coming))
        self._embeddings.append(_Embedding(window, vectors))
        if coming is not None:
            await self._write_next()

    async def _write_next(self) -> None:
        """The first of the windows that are being embedded is written once it is."""
        embedding = self._embeddings[0]
        await _ended(embedding.vectors, self._writing)
        self._embeddings.popleft()
        self._vectors = embedding.vectors.result()
        self._writing = asyncio.create_task(_write(self._run, embedding.window, self._vectors))


async def _ended(*tasks: asyncio.Task[Any] | None) -> None:
    """All of them are done. The first that fails raises its error here; whoever is cancelled here leaves them going."""
    under_way = [task for task in tasks if task is not None]
    if not under_way:
        return
    done, _ = await asyncio.wait(under_way, return_when=asyncio.FIRST_EXCEPTION)
    for task in done:
        task.result()


async def _take_in(run: _Run, found: Discovery) -> None:
    run.total = len(found.files) + len(found.failures)
    for path, reason in found.failures.items():
        run.note(FileOutcome(path=path, status=FAILED, reason=reason))
    missing = await _known(run, found)
    pipeline = _Pipeline(run)
    try:
        for file in found.files.values():
            prepared = await _prepared(run, file)
            if prepared is not None:
                await pipeline.add(prepared)
        await pipeline.finish()
    except BaseException:
        await pipeline.abandon()
        raise
    moved = {outcome.reason for outcome in run.outcomes if outcome.status == MOVED}
    await _retire(run, [file for file in missing if file.uri not in moved])


async def _known(run: _Run, found: Discovery) -> list[KnownFile]:
    """Live files below the given folders at whose paths nothing stands any more. Also fills the run's look-ups."""
    async with run.database.statements() as connection:
        files = await store.known_files(connection, run.target.workspace_id)
    live = [file for file in files if file.live]
    run.known = {file.uri: file for file in files}
    absolute = [file.uri for file in live if file.uri.startswith("/") and Path(file.uri) not in found.files]
    empty = set(await asyncio.to_thread(lambda: list(gone(absolute))))
    for file in live:
        if file.uri in empty:
            run.by_hash.setdefault(file.content_hash, []).append(file)
    return [
        file for file in live if file.uri in empty and any(Path(file.uri).is_relative_to(root) for root in found.roots)
    ]


async def _prepared(run: _Run, file: ReportFile) -> Prepared | None:
    """The file ready to be written; None where nothing of it needs to be, its outcome noted."""
    uri = str(file.path)
    try:
        content = await asyncio.to_thread(read, file.path, max_bytes=run.max_file_bytes)
        digest = file_hash(content, run.language)
        known = run.known.get(uri)
        known = known if known is not None and known.live else None
        if known is not None and known.content_hash == digest:
            if known.title != str(file.shown):
                await _rename(run, known, file)
            run.note(FileOutcome(path=str(file.shown), status=UNCHANGED))
            return None
        if run.by_hash.get(digest):
            await _moved(run, run.by_hash[digest].pop(), file, over=known)
            return None
        return await asyncio.to_thread(
            prepare,
            content,
            uri=uri,
            shown=file.shown,
            language=run.language,
            counter=run.counter,
            mask=run.mask,
        )
    except (UnreadableFile, InvalidInput) as error:
        run.note(FileOutcome(path=str(file.shown), status=FAILED, reason=str(error)))
        return None


async def _moved(run: _Run, known: KnownFile, file: ReportFile, *, over: KnownFile | None) -> None:
    """`over` is what stood at the path that the file was moved to."""
    retired = await _rename(run, known, file, over=over)
    if over is not None:
        reason = f"{known.title} was moved over it"
        run.note(FileOutcome(path=over.uri, status=RETIRED, chunks=retired, reason=reason))
    run.note(FileOutcome(path=str(file.shown), status=MOVED, reason=known.uri))


async def _rename(run: _Run, known: KnownFile, file: ReportFile, *, over: KnownFile | None = None) -> int:
    """How many live chunks stood at the file's path before."""
    if run.dry_run:
        return 0
    renamed = await rename(run.database, run.counter, run.target, known, file, over=over)
    run.retitled += renamed.retitled
    return renamed.retired


async def _write(run: _Run, window: Sequence[Prepared], vectors: _Vectors) -> None:
    if run.dry_run:
        outcomes = await foreseen(run.database, run.target.workspace_id, window, run.known)
    else:
        written = await write_files(run.database, run.target, window, model=vectors.model, literals=vectors.literals)
        run.waiting += written.waiting
        outcomes = written.outcomes
    for outcome in outcomes:
        run.note(outcome)


async def _vectors(
    run: _Run, window: Sequence[Prepared], written: _Vectors | None = None, coming: _Embedding | None = None
) -> _Vectors:
    """A vector for each text of the window. What is stored is not embedded again, nor what was made for the window
    that is being `written`, or is made for the one before this that is still `coming`.

    The model is asked for by each window, because the store may move to another one while a long ingestion goes on.
    """
    rows = {row.content_hash: row for prepared in window for row in prepared.rows}
    if run.dry_run:
        return _Vectors()
    model = await serving_model(run.database, run.provider)
    speaker = None if model is None else pinned(run.provider, model.name)
    if model is None or speaker is None or not rows:
        return _Vectors()
    repeated = rows.keys() & (coming.digests if coming is not None else set[bytes]())
    literals = _of_model(written, model, rows.keys() - repeated)
    missing = [row for digest, row in rows.items() if digest not in literals and digest not in repeated]
    literals |= await _stored_vectors(run, model, missing)
    fresh = [row for row in missing if row.content_hash not in literals]
    try:
        matrix = await speaker.embed_documents([embedded_text(row.memory.title, row.memory.body) for row in fresh])
    except EmbeddingUnavailable as error:
        run.degraded = str(error)
        logger.warning("stored without vectors", chunks=len(fresh), reason=str(error))
    else:
        literals |= {row.content_hash: text for row, text in zip(fresh, as_literals(matrix), strict=True)}
    if coming is not None and repeated:
        literals |= _of_model(await coming.vectors, model, repeated)
    return _Vectors(model=model, literals=literals)


def _of_model(held: _Vectors | None, model: StoredModel, digests: Set[bytes]) -> dict[bytes, str]:
    """Those of the vectors that are the model's, for these content hashes."""
    if held is None or held.model != model:
        return {}
    return {digest: held.literals[digest] for digest in digests & held.literals.keys()}


async def _stored_vectors(run: _Run, model: StoredModel, rows: Sequence[MemoryRow]) -> dict[bytes, str]:
    async with run.database.transaction() as connection:
        if not await is_served(connection, model):
            return {}
        return await store.known_vectors(connection, model, run.target.workspace_id, rows)


async def _retire(run: _Run, missing: Sequence[KnownFile]) -> None:
    for file in missing:
        chunks = 0
        if not run.dry_run:
            async with run.database.transaction() as connection:
                chunks = await store.retire(connection, run.target.workspace_id, file.source_id)
        run.note(FileOutcome(path=file.uri, status=RETIRED, chunks=chunks))


async def _settle(run: _Run) -> None:
    """What a worker would do soon is done at once, so that the store is at its best when the command ends."""
    async with run.database.transaction() as connection:
        await lexical_index.refresh_statistics(connection, run.target.workspace_id)
    if run.retitled:
        try:
            await embed_waiting(run.database, run.provider, ids=run.retitled)
        except EmbeddingUnavailable as error:
            run.degraded, run.waiting = str(error), run.waiting + len(run.retitled)
    await build_indexes(run.database)
