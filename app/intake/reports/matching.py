"""Matches files with what is stored of them: a changed file's chunks by their text, a moved file by its content."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from uuid import UUID

from app.db.database import Database
from app.index.indexing import reindex_memories
from app.index.vectors import embedded_text
from app.intake.reports import store
from app.intake.reports.chunk import HEADING_SEPARATOR
from app.intake.reports.prepare import path_tags, readable
from app.intake.reports.scan import ReportFile
from app.intake.reports.store import KnownChunk, LiveChunk
from app.links.store import forget_found
from app.memories import sources
from app.memories.memory import MemoryRow, NewMemory, content_hash
from app.memories.sources import KnownFile, Retitled
from app.models.protocols import TokenCounter
from app.workspaces.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """The changes that make the stored chunks those of the file."""

    kept: tuple[tuple[KnownChunk, MemoryRow], ...]
    """Known memories whose text stands in the file, each with what the file now says of it."""
    new: tuple[MemoryRow, ...]
    retired: tuple[UUID, ...]
    """Live memories whose text is gone."""
    barred: int = 0
    """Chunks of the file that are known and stay out."""
    replaced: tuple[tuple[UUID, UUID], ...] = ()
    """New memories with the live one that stood in their place and whose text is gone."""


def matched(rows: Sequence[MemoryRow], known: Sequence[KnownChunk]) -> Matching:
    """Match a file's chunks with its known memories by text.

    Of several with one text, the one at the same ordinal is taken first, then a live one before a retired one.
    """
    pools: dict[bytes, list[KnownChunk]] = defaultdict(list)
    for chunk in sorted(known, key=lambda chunk: (not chunk.live, not chunk.barred, chunk.memory_id)):
        pools[chunk.content_hash].append(chunk)
    partners = _by_place(rows, pools)
    new: list[MemoryRow] = []
    barred = 0
    for row in rows:
        if row.memory_id in partners:
            continue
        pool = pools[row.content_hash]
        if pool and pool[0].barred:
            pool.pop(0)
            barred += 1
        elif pool:
            partners[row.memory_id] = pool.pop(0)
        else:
            new.append(row)
    kept = tuple((partners[row.memory_id], row) for row in rows if row.memory_id in partners)
    stay = {chunk.memory_id for chunk, _ in kept}
    retired = tuple(chunk.memory_id for chunk in known if chunk.live and chunk.memory_id not in stay)
    gone = {chunk.ordinal: chunk.memory_id for chunk in known if chunk.live and chunk.memory_id not in stay}
    replaced = tuple((row.memory_id, gone[place]) for row in new if (place := row.memory.ordinal) in gone)
    return Matching(kept=kept, new=tuple(new), retired=retired, barred=barred, replaced=replaced)


def _by_place(rows: Sequence[MemoryRow], pools: dict[bytes, list[KnownChunk]]) -> dict[UUID, KnownChunk]:
    partners: dict[UUID, KnownChunk] = {}
    for row in rows:
        pool = pools[row.content_hash]
        same = next((chunk for chunk in pool if chunk.live and chunk.ordinal == row.memory.ordinal), None)
        if same is not None:
            pool.remove(same)
            partners[row.memory_id] = same
    return partners


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
    retitled = (
        [_retitled(chunk, new, counter) for chunk in chunks if chunk.heading_path[:1] == (old,)] if old != new else []
    )
    ids = [chunk.memory_id for chunk in retitled]
    async with database.session(workspace) as session:
        retired = await store.retire(session, over.source_id) if over is not None else 0
        await sources.move_file(session, known, uri=str(file.path), title=str(file.shown), tags=path_tags(file.shown))
        if ids:
            await sources.retitle_chunks(session, retitled)
            await reindex_memories(session, ids)
            await forget_found(session, ids)
    return Renamed(retitled=tuple(ids), retired=retired)


def _retitled(chunk: LiveChunk, name: str, counter: TokenCounter) -> Retitled:
    heading_path = (name, *chunk.heading_path[1:])
    memory = NewMemory(kind="chunk", body=chunk.body, title=HEADING_SEPARATOR.join(heading_path))
    return Retitled(
        memory_id=chunk.memory_id,
        title=memory.title,
        heading_path=heading_path,
        content_hash=content_hash(memory, chunk.language),
        tokens=counter.count(embedded_text(memory.title, memory.body)),
    )
