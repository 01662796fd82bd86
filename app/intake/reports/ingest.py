"""The verb that takes report files in."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import structlog

from app.db.engine import Database
from app.errors import EmbeddingUnavailable, InvalidInput
from app.index import lexical as lexical_index
from app.index.backfill import build_indexes, embed_waiting
from app.intake.reports import store
from app.intake.reports.log import log_ingestion
from app.intake.reports.outcome import FAILED, MOVED, RETIRED, UNCHANGED, FileOutcome, Ingestion
from app.intake.reports.pipeline import Pipeline, vectors_of, write_window
from app.intake.reports.prepare import Prepared, file_hash, prepare
from app.intake.reports.progress import OnProgress, UnderWay
from app.intake.reports.rename import rename
from app.intake.reports.scan import SUFFIXES, Discovery, ReportFile, UnreadableFile, discover, gone, read
from app.intake.reports.store import KnownFile
from app.memories.admission import too_long_uri, unstorable
from app.models.protocols import EmbeddingProvider, TokenCounter
from app.workspaces import store as workspaces
from app.workspaces.languages import check_language, configuration
from app.workspaces.workspace import Workspace, checked_name

NO_WORKSPACE = Workspace(workspace_id=0, name="", language="", languages=(), document_count=0, mean_length=0)
"""What a dry run looks into where nothing was ever written."""

logger = structlog.get_logger()


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
    run = UnderWay(
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
    run = UnderWay(
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
    await write_window(run, [prepared], await vectors_of(run, [prepared]))
    await _logged(run, started)
    return run.outcomes[0]


async def _logged(run: UnderWay, started: float) -> Ingestion:
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


async def _take_in(run: UnderWay, found: Discovery) -> None:
    run.total = len(found.files) + len(found.failures)
    for path, reason in found.failures.items():
        run.note(FileOutcome(path=path, status=FAILED, reason=reason))
    missing = await _known(run, found)
    pipeline = Pipeline(run)
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


async def _known(run: UnderWay, found: Discovery) -> list[KnownFile]:
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


async def _prepared(run: UnderWay, file: ReportFile) -> Prepared | None:
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


async def _moved(run: UnderWay, known: KnownFile, file: ReportFile, *, over: KnownFile | None) -> None:
    """`over` is what stood at the path that the file was moved to."""
    retired = await _rename(run, known, file, over=over)
    if over is not None:
        reason = f"{known.title} was moved over it"
        run.note(FileOutcome(path=over.uri, status=RETIRED, chunks=retired, reason=reason))
    run.note(FileOutcome(path=str(file.shown), status=MOVED, reason=known.uri))


async def _rename(run: UnderWay, known: KnownFile, file: ReportFile, *, over: KnownFile | None = None) -> int:
    """How many live chunks stood at the file's path before."""
    if run.dry_run:
        return 0
    renamed = await rename(run.database, run.counter, run.target, known, file, over=over)
    run.retitled += renamed.retitled
    return renamed.retired


async def _retire(run: UnderWay, missing: Sequence[KnownFile]) -> None:
    for file in missing:
        chunks = 0
        if not run.dry_run:
            async with run.database.transaction() as connection:
                chunks = await store.retire(connection, run.target.workspace_id, file.source_id)
        run.note(FileOutcome(path=file.uri, status=RETIRED, chunks=chunks))


async def _settle(run: UnderWay) -> None:
    """What a worker would do soon is done at once, so that the store is at its best when the command ends."""
    async with run.database.transaction() as connection:
        await lexical_index.refresh_statistics(connection, run.target.workspace_id)
    if run.retitled:
        try:
            await embed_waiting(run.database, run.provider, ids=run.retitled)
        except EmbeddingUnavailable as error:
            run.degraded, run.waiting = str(error), run.waiting + len(run.retitled)
    await build_indexes(run.database)
