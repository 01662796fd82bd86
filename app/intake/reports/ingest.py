"""The verb that takes report files in."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from app.db.database import Database
from app.errors import EmbeddingUnavailable, InvalidInput
from app.index.backfill import embed_pending
from app.index.indexing import refresh_statistics
from app.intake.reports import store
from app.intake.reports.matching import rename
from app.intake.reports.outcome import (
    FAILED,
    MOVED,
    RETIRED,
    UNCHANGED,
    FileOutcome,
    Ingestion,
    IngestionState,
    OnProgress,
    log_ingestion,
)
from app.intake.reports.pipeline import Pipeline, vectors_of, write_window
from app.intake.reports.prepare import Prepared, file_hash, prepare
from app.intake.reports.scan import SUFFIXES, Discovery, ReportFile, UnreadableFile, discover, gone, read
from app.memories import sources
from app.memories.admission import too_long_uri, unstorable
from app.memories.sources import KnownFile
from app.models.protocols import EmbeddingProvider, TokenCounter
from app.workspaces.resolve import made
from app.workspaces.workspace import Workspace, check_language, configuration


async def ingest(
    database: Database,
    provider: EmbeddingProvider,
    counter: TokenCounter,
    *,
    workspace: Workspace,
    language: str | None = None,
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
    each of them whole or not at all. A cancellation waits for the write in progress; nothing more is embedded. A vector
    index is left to others (`app.index.backfill.build_indexes`).

    `language` is that of the files; None stands for the workspace's.

    Raises:
        InvalidInput: there is no such language.
        DatabaseUnavailable: files written before stay; running it again finishes.
    """
    started = time.perf_counter()
    check_language(language)
    workspace = workspace if dry_run else await made(database, workspace)
    state = IngestionState(
        database=database,
        provider=provider,
        counter=counter,
        workspace=workspace,
        language=workspace.language if language is None else configuration(language),
        max_file_bytes=max_file_bytes,
        mask=mask,
        dry_run=dry_run,
        on_progress=on_progress,
    )
    await _take_in(state, await asyncio.to_thread(discover, paths))
    if not dry_run and (state.retitled or any(outcome.status not in {UNCHANGED, FAILED} for outcome in state.outcomes)):
        await _settle(state)
    return await _logged(state, started)


async def ingest_content(
    database: Database,
    provider: EmbeddingProvider,
    counter: TokenCounter,
    *,
    workspace: Workspace,
    language: str | None = None,
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
    workspace = await made(database, workspace)
    state = IngestionState(
        database=database,
        provider=provider,
        counter=counter,
        workspace=workspace,
        language=workspace.language if language is None else configuration(language),
        max_file_bytes=max_file_bytes,
        mask=mask,
        dry_run=False,
    )
    try:
        prepared = await asyncio.to_thread(
            prepare, content, uri=str(shown), shown=shown, language=state.language, counter=counter, mask=mask
        )
    except InvalidInput as error:
        raise InvalidInput("content", error.message) from error
    await write_window(state, [prepared], await vectors_of(state, [prepared]))
    await _logged(state, started)
    return state.outcomes[0]


async def _logged(state: IngestionState, started: float) -> Ingestion:
    ingestion = Ingestion(
        outcomes=tuple(state.outcomes),
        seconds=time.perf_counter() - started,
        dry_run=state.dry_run,
        pending=state.pending,
        degraded=state.degraded,
    )
    await log_ingestion(state.database, state.workspace, ingestion)
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


async def _take_in(state: IngestionState, found: Discovery) -> None:
    state.total = len(found.files) + len(found.failures)
    for path, reason in found.failures.items():
        state.note(FileOutcome(path=path, status=FAILED, reason=reason))
    missing = await _missing(state, found)
    pipeline = Pipeline(state)
    try:
        for file in found.files.values():
            prepared = await _prepared(state, file)
            if prepared is not None:
                await pipeline.add(prepared)
        await pipeline.finish()
    except BaseException:
        await pipeline.abandon()
        raise
    moved = {outcome.reason for outcome in state.outcomes if outcome.status == MOVED}
    await _retire(state, [file for file in missing if file.uri not in moved])


async def _missing(state: IngestionState, found: Discovery) -> list[KnownFile]:
    """Returns the live files below the given folders whose paths are empty now. Also fills the state's look-ups."""
    async with state.database.session(state.workspace, transaction=False) as session:
        known = await sources.known_files(session)
    live = [file for file in known if file.live]
    state.known = {file.uri: file for file in known}
    absolute = [file.uri for file in live if file.uri.startswith("/") and Path(file.uri) not in found.files]
    empty = set(await asyncio.to_thread(lambda: list(gone(absolute))))
    for file in live:
        if file.uri in empty:
            state.by_hash.setdefault(file.content_hash, []).append(file)
    return [
        file for file in live if file.uri in empty and any(Path(file.uri).is_relative_to(root) for root in found.roots)
    ]


async def _prepared(state: IngestionState, file: ReportFile) -> Prepared | None:
    """Returns the file ready to be written; None where nothing of it needs to be, after its outcome was noted."""
    uri = str(file.path)
    try:
        content = await asyncio.to_thread(read, file.path, max_bytes=state.max_file_bytes)
        digest = file_hash(content, state.language)
        known = state.known.get(uri)
        known = known if known is not None and known.live else None
        if known is not None and known.content_hash == digest:
            if known.title != str(file.shown):
                await _rename(state, known, file)
            state.note(FileOutcome(path=str(file.shown), status=UNCHANGED))
            return None
        if state.by_hash.get(digest):
            await _moved(state, state.by_hash[digest].pop(), file, over=known)
            return None
        return await asyncio.to_thread(
            prepare,
            content,
            uri=uri,
            shown=file.shown,
            language=state.language,
            counter=state.counter,
            mask=state.mask,
        )
    except (UnreadableFile, InvalidInput) as error:
        state.note(FileOutcome(path=str(file.shown), status=FAILED, reason=str(error)))
        return None


async def _moved(state: IngestionState, known: KnownFile, file: ReportFile, *, over: KnownFile | None) -> None:
    """Note that a file was moved, and that it replaced the file `over` at its new path."""
    retired = await _rename(state, known, file, over=over)
    if over is not None:
        reason = f"{known.title} was moved over it"
        state.note(FileOutcome(path=over.uri, status=RETIRED, chunks=retired, reason=reason))
    state.note(FileOutcome(path=str(file.shown), status=MOVED, reason=known.uri))


async def _rename(state: IngestionState, known: KnownFile, file: ReportFile, *, over: KnownFile | None = None) -> int:
    """Returns how many live chunks the file that stood at this path before had."""
    if state.dry_run:
        return 0
    renamed = await rename(state.database, state.counter, state.workspace, known, file, over=over)
    state.retitled += renamed.retitled
    return renamed.retired


async def _retire(state: IngestionState, missing: Sequence[KnownFile]) -> None:
    for file in missing:
        chunks = 0
        if not state.dry_run:
            async with state.database.session(state.workspace) as session:
                chunks = await store.retire(session, file.source_id)
        state.note(FileOutcome(path=file.uri, status=RETIRED, chunks=chunks))


async def _settle(state: IngestionState) -> None:
    """Do at once what a worker would do soon for this workspace, so that it is at its best when the command ends."""
    async with state.database.session(state.workspace) as session:
        await refresh_statistics(session)
    if state.retitled:
        try:
            await embed_pending(state.database, state.provider, workspace=state.workspace, ids=state.retitled)
        except EmbeddingUnavailable as error:
            state.degraded, state.pending = str(error), state.pending + len(state.retitled)
