"""The verb that keeps the store level with report files as they are saved."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import structlog
from watchfiles import Change, awatch

from app.db.engine import Database
from app.embeddings.provider import EmbeddingProvider, TokenCounter
from app.errors import DatabaseUnavailable
from app.reports.files import SUFFIXES
from app.reports.ingest import OnProgress, ingest
from app.reports.outcome import Ingestion

DEBOUNCE_MS = 400
"""A burst of saves is taken in together; well within the 2 s after which a saved file should be retrievable."""
RETRY_SECONDS = 1.0
"""Between two attempts while the database is away."""

logger = structlog.get_logger()


async def watch(  # noqa: PLR0913 - one an option of the command
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
    stop: asyncio.Event,
    on_progress: OnProgress = lambda _done, _total, _path: None,
) -> AsyncIterator[Ingestion]:
    """Ingest, then ingest again after every burst of changes below `paths`, until `stop` is set.

    A database that is away for a while delays an ingestion; it loses none.
    """

    async def once() -> Ingestion:
        return await ingest(
            database,
            provider,
            counter,
            workspace=workspace,
            language=language,
            default_language=default_language,
            paths=paths,
            max_file_bytes=max_file_bytes,
            mask=mask,
            on_progress=on_progress,
        )

    # A file is replaced by many editors, so it is its folder that is watched.
    watched = {path if path.is_dir() else path.parent for path in paths if path.exists()}
    if not watched:
        yield await once()
        return
    changes = awatch(*watched, watch_filter=_is_report, debounce=DEBOUNCE_MS, stop_event=stop, recursive=True)
    # The watch stands before the first look, so that nothing saved between them is missed.
    pending = asyncio.ensure_future(anext(changes, None))
    yield await once()
    while await pending is not None:
        pending = asyncio.ensure_future(anext(changes, None))
        while not stop.is_set():
            try:
                yield await once()
                break
            except DatabaseUnavailable as error:
                logger.warning("changes wait for the database", reason=str(error))
                await asyncio.sleep(RETRY_SECONDS)


def _is_report(change: Change, path: str) -> bool:
    """A folder may have come or gone with its reports inside; what is gone can have been one."""
    suffix = Path(path).suffix.lower()
    return suffix in SUFFIXES or not suffix or change is Change.deleted or Path(path).is_dir()
