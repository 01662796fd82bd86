"""Renames a file that stands at another path now, its content unchanged."""

from dataclasses import dataclass
from pathlib import PurePosixPath
from uuid import UUID

from app.db.database import Database
from app.index.indexing import reindex_memories
from app.index.vectors import embedded_text
from app.intake.reports import store
from app.intake.reports.chunk import TRAIL_SEPARATOR
from app.intake.reports.chunking import readable
from app.intake.reports.prepare import path_tags
from app.intake.reports.scan import ReportFile
from app.intake.reports.store import LiveChunk
from app.links.store import forget_found
from app.memories import sources
from app.memories.memory import NewMemory, content_hash
from app.memories.sources import KnownFile, Retitled
from app.models.protocols import TokenCounter
from app.workspaces.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Renamed:
    """The changes that a new path made."""

    retitled: tuple[UUID, ...] = ()
    """Chunks that need the vector of their new title."""
    retired: int = 0
    """Number of live chunks of the file that stood at that path before."""


async def rename(
    database: Database,
    counter: TokenCounter,
    workspace: Workspace,
    known: KnownFile,
    file: ReportFile,
    *,
    over: KnownFile | None = None,
) -> Renamed:
    """Give a known file its new path, title and tags; its chunks keep their ids, their ratings and their text.

    The chunks of a file without a title of its own are called by its path: they are indexed anew. The file that stood
    at the new path before, `over`, is retired.
    """
    old, new = readable(PurePosixPath(known.title)), readable(file.shown)
    async with database.session(workspace, transaction=False) as session:
        chunks = await store.live_chunks(session, known.source_id)
    retitled = [_retitled(chunk, new, counter) for chunk in chunks if chunk.trail[:1] == (old,)] if old != new else []
    ids = [chunk.memory_id for chunk in retitled]
    async with database.session(workspace) as session:
        retired = await store.retire(session, over.source_id) if over is not None else 0
        await sources.move_file(
            session,
            known,
            uri=str(file.path),
            title=str(file.shown),
            tags=path_tags(file.shown),
        )
        if ids:
            await sources.retitle_chunks(session, retitled)
            await reindex_memories(session, ids)
            await forget_found(session, ids)
    return Renamed(retitled=tuple(ids), retired=retired)


def _retitled(chunk: LiveChunk, name: str, counter: TokenCounter) -> Retitled:
    trail = (name, *chunk.trail[1:])
    memory = NewMemory(kind="chunk", body=chunk.body, title=TRAIL_SEPARATOR.join(trail))
    return Retitled(
        memory_id=chunk.memory_id,
        title=memory.title,
        heading_path=trail,
        content_hash=content_hash(memory, chunk.language),
        tokens=counter.count(embedded_text(memory.title, memory.body)),
    )
