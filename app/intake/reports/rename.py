"""A file that stands at another path now, its content unchanged."""

from dataclasses import dataclass
from pathlib import PurePosixPath
from uuid import UUID

from app.db.engine import Database
from app.index.indexing import make_findable_anew
from app.index.vectors import embedded_text
from app.intake.reports import store
from app.intake.reports.chunk import TRAIL_SEPARATOR
from app.intake.reports.chunking import readable
from app.intake.reports.prepare import path_tags
from app.intake.reports.scan import ReportFile
from app.intake.reports.store import KnownFile, LiveChunk, Retitled
from app.memories.memory import NewMemory, content_hash
from app.models.protocols import TokenCounter
from app.workspaces.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Renamed:
    """What a new path changed."""

    retitled: tuple[UUID, ...] = ()
    """Chunks that wait for the vector of their new title."""
    retired: int = 0
    """Live chunks of what stood at that path before."""


async def rename(
    database: Database,
    counter: TokenCounter,
    target: Workspace,
    known: KnownFile,
    file: ReportFile,
    *,
    over: KnownFile | None = None,
) -> Renamed:
    """Give a known file its new path, title and tags; its chunks keep their ids, their ratings and their text.

    Where a file has no title of its own its chunks are called by its path, and that changes with it: they are indexed
    anew. What stood at the new path before, `over`, is retired with it.
    """
    old, new = readable(PurePosixPath(known.title)), readable(file.shown)
    async with database.statements() as connection:
        chunks = await store.live_chunks(connection, target.workspace_id, known.source_id)
    retitled = [_retitled(chunk, new, counter) for chunk in chunks if chunk.trail[:1] == (old,)] if old != new else []
    ids = [chunk.memory_id for chunk in retitled]
    async with database.transaction() as connection:
        retired = await store.retire(connection, target.workspace_id, over.source_id) if over is not None else 0
        await store.move(
            connection,
            target.workspace_id,
            known,
            uri=str(file.path),
            title=str(file.shown),
            tags=path_tags(file.shown),
        )
        if ids:
            await store.retitle(connection, target.workspace_id, retitled)
            await make_findable_anew(connection, target.workspace_id, ids)
    return Renamed(retitled=tuple(ids), retired=retired)


def _retitled(chunk: LiveChunk, name: str, counter: TokenCounter) -> Retitled:
    trail = (name, *chunk.trail[1:])
    memory = NewMemory(kind="chunk", body=chunk.body, title=TRAIL_SEPARATOR.join(trail))
    return Retitled(
        memory_id=chunk.memory_id,
        title=memory.title,
        trail=trail,
        content_hash=content_hash(memory, chunk.language),
        tokens=counter.count(embedded_text(memory.title, memory.body)),
    )
