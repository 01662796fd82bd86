"""The verb that keeps the store level with report files as they are saved."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path

import structlog
from watchfiles import Change, awatch

from app.db.database import Database
from app.errors import DatabaseUnavailable
from app.intake.reports.ingest import ingest
from app.intake.reports.outcome import Ingestion, OnProgress
from app.intake.reports.scan import SUFFIXES
from app.models.protocols import EmbeddingProvider, TokenCounter
from app.workspaces.workspace import Workspace

DEBOUNCE_MS = 400
"""A burst of saves is taken in together; well within the 2 s after which a saved file should be retrievable."""
RETRY_SECONDS = 1.0
"""Between two attempts while the database is away."""

logger = structlog.get_logger()


async def watch(
    database: Database,
    provider: EmbeddingProvider,
    counter: TokenCounter,
    *,
    workspace: Workspace,
    language: str | None = None,
    paths: Sequence[Path],
    max_file_bytes: int,
    mask: bool = True,
    stop: asyncio.Event,
    on_progress: OnProgress = lambda _done, _total, _path: None,
) -> AsyncIterator[Ingestion]:
    """Ingest, then ingest again after every burst of changes below `paths`, until `stop` is set.

    That also ends an ingestion in progress, as a cancellation does.

    A database that is away for a while delays an ingestion; it loses none.
    """

    def once() -> Coroutine[None, None, Ingestion]:
        return ingest(
            database,
            provider,
            counter,
            workspace=workspace,
            language=language,
            paths=paths,
            max_file_bytes=max_file_bytes,
            mask=mask,
            on_progress=on_progress,
        )

    # A file is replaced by many editors, so it is its folder that is watched.
    watched = {path if path.is_dir() else path.parent for path in paths if path.exists()}
    if not watched:
        if (ingestion := await _unless(stop, once())) is not None:
            yield ingestion
        return
    changes = awatch(*watched, watch_filter=_is_report, debounce=DEBOUNCE_MS, stop_event=stop, recursive=True)
    # The watch stands before the first look, so that nothing saved between them is missed.
    pending = asyncio.ensure_future(anext(changes, None))
    if (ingestion := await _unless(stop, once())) is not None:
        yield ingestion
    while await pending is not None:
        pending = asyncio.ensure_future(anext(changes, None))
        if (ingestion := await _once_it_can(stop, once)) is not None:
            yield ingestion


async def _once_it_can(stop: asyncio.Event, once: Callable[[], Coroutine[None, None, Ingestion]]) -> Ingestion | None:
    """Ingests as soon as the database is there; returns None where it was told to stop before."""
    while not stop.is_set():
        try:
            return await _unless(stop, once())
        except DatabaseUnavailable as error:
            logger.warning("changes wait for the database", reason=str(error))
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), RETRY_SECONDS)
    return None


async def _unless(stop: asyncio.Event, work: Coroutine[None, None, Ingestion]) -> Ingestion | None:
    """Returns the work's result; None where it was told to stop before the work was done."""
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        working.cancel()
        stopping.cancel()
        await asyncio.wait((working, stopping))
    return None if working.cancelled() else working.result()


def _is_report(change: Change, path: str) -> bool:
    """Tells whether reports may have changed: a folder may have come or gone with reports inside."""
    suffix = Path(path).suffix.lower()
    return suffix in SUFFIXES or not suffix or change is Change.deleted or Path(path).is_dir()
