"""The verbs that ingest report files, by their paths, as a content, or whenever they are saved."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from uuid import UUID

import structlog
from watchfiles import Change, awatch

from app.errors import (
    DatabaseUnavailable,
    Forbidden,
    InvalidInput,
    PriorsError,
    StorageFull,
    Unavailable,
    check,
)
from app.foundation.db.database import Database
from app.foundation.models.protocols import EmbeddingProvider, TokenCounter
from app.foundation.safety.secrets import MASKED
from app.foundation.text.data import unstorable
from app.foundation.text.words import count_noun
from app.foundation.values import frozen
from app.intake.cases.judgement import FoundJudgement
from app.intake.cases.service import Cases
from app.intake.reports import scan, store
from app.intake.reports.pipeline import Pipeline, apply_file, move, rename, retire, vectors_of
from app.intake.reports.prepare import HASH_BYTES, EmptyReport, Prepared, file_hash, judgements_of, prepare
from app.intake.reports.store import (
    CHANGED,
    FAILED,
    LEFT_OUT,
    MOVED,
    NEW,
    STOPS,
    UNCHANGED,
    FileOutcome,
    Ingestion,
    IngestionOptions,
    IngestionState,
    LoggedIngestion,
    or_failure,
    reason_of,
)
from app.intake.sessions import store as sessions
from app.intake.sessions.formats.detect import read_log
from app.intake.sessions.prepare import VERSION
from app.intake.sessions.take_in import SessionIntake, TakenIn
from app.intake.sessions.transcript import Log
from app.storage.index.indexing import refresh_statistics
from app.storage.index.service import Embedder
from app.storage.memories import sources
from app.storage.memories.gate import too_long_uri
from app.storage.memories.service import check_limit
from app.storage.memories.sources import KnownFile
from app.storage.tenants.service import Workspaces
from app.storage.tenants.workspace import Workspace, check_language, configuration
from app.tracing import span

_DEBOUNCE_MS = 400
"""Milliseconds in which a burst of saves is collected. A saved file should be retrievable after 2 s."""
_LARGE_BYTES = 200_000
"""Files of fewer bytes are read first, in the order of their paths; they have some 350 chunks, a minute's work."""
RETRY_SECONDS = 1.0
"""Time between two attempts while the database is unreachable."""

logger = structlog.get_logger()


async def _log(state: IngestionState) -> Ingestion:
    """Returns the outcome of all files; logs it unless all are unchanged or it is a dry run."""
    ingestion = state.result
    ingestion.seconds = time.perf_counter() - state.started
    if (ingestion.failed or ingestion.has_changes) and not ingestion.dry_run:
        async with state.database.session(state.workspace) as session:
            await store.log_ingestion(session, ingestion)
    return ingestion


def _checked_path(path: str) -> PurePosixPath:
    shown = PurePosixPath(path.strip().lstrip("/"))
    check(unstorable(path, "path"))
    if ".." in shown.parts:
        raise InvalidInput("path", "names a file by a relative path without ..")
    if shown.suffix.lower() not in scan.SUFFIXES:
        raise InvalidInput("path", f"names a file that is no report: the suffixes are {scan.SUFFIXES_SHOWN}")
    if reason := too_long_uri(path):
        raise InvalidInput("path", reason)
    return shown


async def _leave_out(state: IngestionState, file: scan.ReportFile, reason: str) -> FileOutcome:
    """Returns the outcome of a file that states nothing; what it stated before is retired."""
    known = state.known.get(file.uri)
    if known is not None and known.live:
        return await retire(state, known, reason=f"{reason}; it said more before")
    return FileOutcome(path=str(file.shown), status=LEFT_OUT, reason=reason)


def _stamp(path: Path) -> tuple[int, int]:
    """Returns the size of a file and the time of its last change; nothing of a file that is gone."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns


async def _unless(stop: asyncio.Event, work: Coroutine[None, None, Ingestion]) -> Ingestion | None:
    """Returns the result of the work; None if `stop` was set before the work was done."""
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        working.cancel()
        stopping.cancel()
        await asyncio.wait((working, stopping))
    return None if working.cancelled() else working.result()


def _is_report(change: Change, path: str) -> bool:
    """Tells whether reports may have changed; a folder that appears or disappears may contain reports."""
    suffix = Path(path).suffix.lower()
    return suffix in scan.SUFFIXES or not suffix or change is Change.deleted or Path(path).is_dir()


async def _missing(state: IngestionState, found: scan.Discovery) -> list[KnownFile]:
    """Returns the live files below the given folders that no longer exist. Also fills the state's look-ups."""
    async with state.database.session(state.workspace, transaction=False) as session:
        known = await sources.known_files(session)
        state.log_hashes = await sessions.log_hashes(session, [file.uri for file in found.files.values()])
    live = [file for file in known if file.live]
    state.known = {file.uri: file for file in known}
    there = {file.uri for file in found.files.values()}
    roots = [scan.without_secrets(root) for root in found.roots]

    def is_below(uri: str) -> bool:
        return any(Path(uri).is_relative_to(root) for root in roots)

    # A path with a secret is stored masked: no file has it, but below the given folders its file would have been found.
    absolute = [
        file.uri
        for file in live
        if file.uri.startswith("/") and file.uri not in there and (MASKED not in file.uri or is_below(file.uri))
    ]
    gone = found.gone
    empty = gone if gone is not None else set(await asyncio.to_thread(scan.missing_paths, absolute))
    for file in live:
        if file.uri in empty:
            state.by_hash.setdefault(file.content_hash, []).append(file)
    return [file for file in live if file.uri in empty and is_below(file.uri)]


@frozen
class Ingestions:
    """Ingests report files and logs of sessions."""

    database: Database
    provider: EmbeddingProvider
    counter: TokenCounter
    max_file_bytes: int
    mask: bool = True
    """Masks secrets in what it stores."""

    async def ingest(
        self, workspace: Workspace, paths: Sequence[Path], options: IngestionOptions | None = None
    ) -> Ingestion:
        """Makes the store hold the present content of the report files and the sessions below `paths`.

        Unchanged files are not embedded again; a changed file keeps the chunks whose text did not change; a moved file
        is recognised by its content; files that were deleted below these paths are retired. A file that cannot be
        ingested is named with its reason, keeps its stored chunks, and does not stop the others. Several files are
        written together, each of them whole or not at all. A cancellation waits for the write in progress and embeds
        nothing more. This verb builds no vector index (`app.storage.index.service.build_indexes` does).

        Raises:
            InvalidInput: the language is unknown.
            DatabaseUnavailable: the files written before stay; another call writes the others.
        """
        with span("ingestion.discover"):
            found = await asyncio.to_thread(scan.discover, paths)
        return await self.ingest_found(workspace, found, options)

    async def ingest_found(
        self, workspace: Workspace, found: scan.Discovery, options: IngestionOptions | None = None
    ) -> Ingestion:
        """Ingests files that were found, or sent, as `ingest` does.

        Raises:
            InvalidInput: the language is unknown.
            DatabaseUnavailable: the files written before stay; another call writes the others.
        """
        with span("ingestion"):
            state = await self._begin_state(workspace, options)
            await self._take_in(state, found)
            if (state.retitled or state.result.has_changes) and not state.options.dry_run:
                with span("ingestion.settle"):
                    await self._settle(state)
            return await _log(state)

    async def ingest_content(
        self, workspace: Workspace, path: str, content: bytes, options: IngestionOptions | None = None
    ) -> FileOutcome:
        """Ingests a content under the path that the caller gives, as `ingest` does with a file, a log of sessions too.

        Raises:
            InvalidInput: the path or the content is not valid; the message says why.
            DatabaseUnavailable: the content is not stored.
        """
        shown = _checked_path(path)
        file = scan.ReportFile(path=Path(shown), shown=scan.without_secrets(shown))
        state = await self._begin_state(workspace, options)
        try:
            scan.check_size(content, max_bytes=scan.LOG_TIMES * self.max_file_bytes)
            outcome = await self._ingest_one(state, file, content)
        except (Unavailable, Forbidden):
            raise
        except Exception as error:
            message = error.message if isinstance(error, InvalidInput) else reason_of(error, path)
            raise InvalidInput("content", message) from error
        state.note(outcome)
        await _log(state)
        return outcome

    async def watch(
        self,
        workspace: Workspace,
        paths: Sequence[Path],
        options: IngestionOptions | None = None,
        *,
        stop: asyncio.Event,
    ) -> AsyncIterator[Ingestion]:
        """Ingests, then ingests again after every burst of changes below `paths`, until `stop` is set.

        Setting `stop` also ends an ingestion in progress, as a cancellation does.

        An unreachable database and a full disk delay ingestions, but lose none.
        """
        options = options or IngestionOptions()
        # Many editors replace a file instead of writing into it, so its folder is watched.
        watched = {path if path.is_dir() else path.parent for path in paths if path.exists()}
        if not watched:
            if (ingestion := await _unless(stop, self.ingest(workspace, paths, options))) is not None:
                yield ingestion
            return
        changes = awatch(*watched, watch_filter=_is_report, debounce=_DEBOUNCE_MS, stop_event=stop, recursive=True)
        # The watch begins before the first ingestion, so that no file that is saved between them is missed.
        pending = asyncio.ensure_future(anext(changes, None))
        if (ingestion := await _unless(stop, self.ingest(workspace, paths, options))) is not None:
            yield ingestion
        while await pending is not None:
            pending = asyncio.ensure_future(anext(changes, None))
            if (ingestion := await self._once_it_can(workspace, paths, options, stop)) is not None:
                yield ingestion

    async def page(
        self, workspace: Workspace, *, before: UUID | None = None, failed: bool = False, limit: int = 20
    ) -> Sequence[LoggedIngestion]:
        """Returns the ingestions before the given one, newest first; with `failed` only those with failed files.

        Raises:
            InvalidInput: the limit is out of range.
        """
        check_limit(limit)
        async with self.database.session(workspace, reading=True) as session:
            return await store.logged_ingestions(session, before=before, failed=failed, limit=limit)

    async def _ingest_one(self, state: IngestionState, file: scan.ReportFile, content: bytes) -> FileOutcome:
        async with self.database.session(state.workspace, transaction=False) as session:
            state.log_hashes = await sessions.log_hashes(session, [file.uri])
            state.known = {known.uri: known for known in await sources.known_files(session, file.uri)}
        try:
            if (outcome := await self._take_log(state, file, content)) is not None:
                return outcome
            scan.check_size(content, max_bytes=self.max_file_bytes)
            prepared = await self._prepare_file(state, file, content)
        except EmptyReport as error:
            return await _leave_out(state, file, str(error))
        return await apply_file(state, prepared, await vectors_of(state, [prepared]))

    async def _begin_state(self, workspace: Workspace, options: IngestionOptions | None) -> IngestionState:
        options = options or IngestionOptions()
        check_language(options.language)
        if not options.dry_run:
            workspace = await Workspaces(database=self.database).get_or_create(workspace)
        return IngestionState(
            database=self.database,
            provider=self.provider,
            counter=self.counter,
            workspace=workspace,
            options=options,
            result=Ingestion(dry_run=options.dry_run),
            language=workspace.language if options.language is None else configuration(options.language),
        )

    async def _take_in(self, state: IngestionState, found: scan.Discovery) -> None:
        state.total = len(found.files) + len(found.failures) + len(found.left_out)
        for path, reason in found.failures.items():
            state.note(FileOutcome(path=path, status=FAILED, reason=reason))
        for path, suffix in found.left_out.items():
            state.note(FileOutcome(path=path, status=LEFT_OUT, suffix=suffix or scan.NO_SUFFIX, reason=scan.NO_REPORT))
        missing = await _missing(state, found)
        dates, most = found.dates, self.max_file_bytes
        state.dates = await asyncio.to_thread(scan.judged_on, found.files, max_bytes=most) if dates is None else dates
        pipeline = Pipeline(state)
        try:
            # Small files are found soon: a large one, which takes minutes, does not delay them.
            for file in sorted(found.files.values(), key=lambda file: _stamp(file.path)[0] // _LARGE_BYTES):
                read = await or_failure(str(file.shown), self._read_file(state, file))
                if isinstance(read, Prepared):
                    await pipeline.add(read)
                else:
                    state.note(read)
            await pipeline.finish()
        except BaseException:
            await pipeline.abandon()
            raise
        moved = {outcome.reason for outcome in state.result.outcomes if outcome.status == MOVED}
        for known in missing:
            if known.uri not in moved:
                state.note(await or_failure(known.uri, retire(state, known)))

    async def _read_file(self, state: IngestionState, file: scan.ReportFile) -> Prepared | FileOutcome:
        """Returns the prepared file, or its outcome if there is nothing more to write."""
        most, stamp, path = self.max_file_bytes, _stamp(file.path), str(file.shown)
        if state.options.read_logs.get(file.path) == stamp:
            return FileOutcome(path=path, status=UNCHANGED)
        content = await asyncio.to_thread(scan.content_of, file, max_bytes=scan.LOG_TIMES * most)
        if (outcome := await self._take_log(state, file, content)) is not None:
            if outcome.status != FAILED:
                state.options.read_logs[file.path] = stamp
            return outcome
        scan.check_size(content, max_bytes=most)
        digest = file_hash(content, state.language, file.shown, state.dates.get(file.path))
        known = state.known.get(file.uri)
        known = known if known is not None and known.live else None
        if known is not None and known.content_hash == digest:
            if known.title != path:
                await rename(state, known, file, await self._judgements(file, content))
            return FileOutcome(path=path, status=UNCHANGED)
        if state.by_hash.get(digest):
            found = await self._judgements(file, content)
            return await move(state, state.by_hash[digest].pop(), file, found, over=known)
        try:
            return await self._prepare_file(state, file, content)
        except EmptyReport as error:
            return await _leave_out(state, file, str(error))

    async def _take_log(self, state: IngestionState, file: scan.ReportFile, content: bytes) -> FileOutcome | None:
        """Stores the sessions of a file, if it is a log of sessions; returns None for another file."""
        digest = hashlib.blake2b(f"{VERSION}:{state.language}".encode() + content, digest_size=HASH_BYTES).digest()
        if state.log_hashes.get(file.uri) == digest:
            return FileOutcome(path=str(file.shown), status=UNCHANGED)
        log = await asyncio.to_thread(read_log, content, suffix=file.path.suffix.lower(), session_id=file.uri)
        return None if log is None else await self._stored_log(state, file, log, digest)

    async def _stored_log(self, state: IngestionState, file: scan.ReportFile, log: Log, digest: bytes) -> FileOutcome:
        """Stores the sessions of a log; those that cannot be stored are named, and make it a failure."""
        status = CHANGED if file.uri in state.log_hashes else NEW
        if state.options.dry_run:
            turns = sum(len(transcript.turns) for transcript in log.transcripts)
            return FileOutcome(path=str(file.shown), status=status, chunks=turns, skipped=log.skipped, notes=log.notes)
        was_report: tuple[str, ...] = ()
        report = state.known.get(file.uri)
        if report is not None and report.live:
            retired = await retire(state, report)
            was_report = (f"was taken for a report before: {count_noun(retired.chunks, 'chunk')} retired",)
        store_session = partial(
            SessionIntake(database=self.database, counter=self.counter, mask=self.mask).take_in,
            state.workspace,
            path=file.uri,
            language=state.options.language,
            tags=state.options.tags,
        )
        taken, refused = list[TakenIn](), list[str]()
        for number, transcript in enumerate(log.transcripts, 1):
            try:
                if transcript.turns:
                    taken.append(await store_session(transcript))
            except STOPS:
                raise
            except Exception as error:  # noqa: BLE001 - `reason_of` logs it
                refused.append(f"session {number}: {reason_of(error, file.uri)}")
        if not refused:
            async with self.database.session(state.workspace) as session:
                await sessions.note_read(session, file.uri, digest)
        missing = sum(item.missing for item in taken)
        lacking = (f"kept {count_noun(missing, 'turn')} that it no longer has",) if missing else ()
        state.retitled += [memory_id for item in taken for memory_id in item.pending]
        status = status if any(item.status in {NEW, CHANGED} for item in taken) else UNCHANGED
        reason = (
            f"{len(refused)} of {count_noun(len(log.transcripts), 'session')} could not be stored: {'; '.join(refused)}"
        )
        return FileOutcome(
            path=str(file.shown),
            status=FAILED if refused else status,
            reason=reason if refused else "",
            chunks=sum(item.turns for item in taken),
            stored=sum(item.stored for item in taken),
            tokens=sum(item.tokens for item in taken),
            skipped=log.skipped,
            notes=(*was_report, *log.notes, *lacking),
        )

    async def _prepare_file(self, state: IngestionState, file: scan.ReportFile, content: bytes) -> Prepared:
        with span("ingestion.prepare", bytes=len(content)):
            return await asyncio.to_thread(
                prepare,
                content,
                file,
                language=state.language,
                counter=self.counter,
                mask=self.mask,
                dated=state.dates.get(file.path),
                tags=state.options.tags,
            )

    async def _judgements(self, file: scan.ReportFile, content: bytes) -> Sequence[FoundJudgement]:
        return await asyncio.to_thread(judgements_of, content, file, mask=self.mask)

    async def _settle(self, state: IngestionState) -> None:
        """Does the upkeep of this workspace, which a worker would do later, so that it is complete now."""
        async with self.database.session(state.workspace) as session:
            await refresh_statistics(session)
        try:
            database, provider = self.database, self.provider
            cases = Cases(database=database, provider=provider, counter=self.counter, mask_secrets=self.mask)
            state.retitled += await cases.match(state.workspace)
            if state.retitled:
                await Embedder(database=database, provider=provider).embed_pending(state.workspace, ids=state.retitled)
        except STOPS:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, a worker does it later, and the files are stored
            reason = str(error) if isinstance(error, PriorsError) else repr(error)
            state.result.degraded = reason
            state.result.pending += len(state.retitled)

    async def _once_it_can(
        self, workspace: Workspace, paths: Sequence[Path], options: IngestionOptions, stop: asyncio.Event
    ) -> Ingestion | None:
        """Ingests when the database can be reached and has room; returns None if `stop` was set before."""
        while not stop.is_set():
            try:
                return await _unless(stop, self.ingest(workspace, paths, options))
            except (DatabaseUnavailable, StorageFull) as error:
                logger.warning("changes wait for the database", reason=str(error))
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), RETRY_SECONDS)
        return None
