"""Files go in by the window, each of them whole or not at all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.engine import Database, again_after_deadlock
from app.db.queue import EMBED, enqueue
from app.index import lexical as lexical_index
from app.index import vectors
from app.index.indexing import enqueue_statistics
from app.index.vectors import StoredModel
from app.intake.reports import store
from app.intake.reports.matching import Matching, matched
from app.intake.reports.outcome import CHANGED, NEW, UNCHANGED, FileOutcome
from app.intake.reports.prepare import Prepared
from app.intake.reports.store import KnownFile
from app.links import store as links
from app.links.link import SUPERSEDES, Link
from app.memories import store as memories
from app.memories.store import MemoryRow
from app.workspaces import store as workspaces
from app.workspaces.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What became of the files, in their order, and how many of their chunks still wait for a vector."""

    outcomes: tuple[FileOutcome, ...]
    waiting: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """A file whose content differs from what its source holds."""

    prepared: Prepared
    source: KnownFile
    plan: Matching

    @property
    def outcome(self) -> FileOutcome:
        return _outcome(CHANGED if self.source.live and self.source.content_hash else NEW, self.prepared, self.plan.new)


async def write_files(
    database: Database,
    target: Workspace,
    files: Sequence[Prepared],
    *,
    model: StoredModel | None,
    literals: Mapping[bytes, str],
) -> Written:
    """Make each file's source hold exactly its chunks: all of them in one transaction, or none.

    `literals` are vectors by content hash; a chunk that has none goes on the waiting list.
    """

    async def attempt() -> tuple[list[_Change], int]:
        async with database.transaction() as connection:
            changes = await _changes(connection, target.workspace_id, files)
            if changes:
                await _note(connection, target, changes)
            waiting = await _carry_out(connection, target.workspace_id, _together(changes), model, literals)
            if changes:
                await enqueue_statistics(connection, target.workspace_id)
            return changes, waiting

    changes, waiting = await again_after_deadlock(attempt)
    outcomes = {change.prepared.uri: change.outcome for change in changes}
    return Written(
        outcomes=tuple(outcomes.get(file.uri) or _outcome(UNCHANGED, file) for file in files), waiting=waiting
    )


async def foreseen(
    database: Database, workspace_id: int, files: Sequence[Prepared], sources: Mapping[str, KnownFile]
) -> tuple[FileOutcome, ...]:
    """What `write_files` would make of these files, whose known `sources` are given by path; nothing is written."""
    ids = [sources[file.uri].source_id for file in files if file.uri in sources]
    async with database.statements() as connection:
        known = await store.known_chunks(connection, workspace_id, ids)

    def outcome(file: Prepared) -> FileOutcome:
        source = sources.get(file.uri)
        plan = matched(file.rows, known[source.source_id] if source is not None else ())
        return _outcome(CHANGED if source is not None and source.live else NEW, file, plan.new)

    return tuple(outcome(file) for file in files)


async def _changes(connection: AsyncConnection, workspace_id: int, files: Sequence[Prepared]) -> list[_Change]:
    sources = await store.locked_files(connection, workspace_id, {file.uri: file.title for file in files})
    differing = [
        (file, source)
        for file in files
        if not ((source := sources[file.uri]).live and source.content_hash == file.content_hash)
    ]
    known = await store.known_chunks(connection, workspace_id, [source.source_id for _, source in differing])
    return [
        _Change(
            prepared=file,
            source=source,
            plan=matched([replace(row, source_id=source.source_id) for row in file.rows], known[source.source_id]),
        )
        for file, source in differing
    ]


def _together(changes: Sequence[_Change]) -> Matching:
    return Matching(
        kept=tuple(pair for change in changes for pair in change.plan.kept),
        new=tuple(row for change in changes for row in change.plan.new),
        retired=tuple(memory_id for change in changes for memory_id in change.plan.retired),
        replaced=tuple(pair for change in changes for pair in change.plan.replaced),
    )


async def _note(connection: AsyncConnection, target: Workspace, changes: Sequence[_Change]) -> None:
    held = [replace(change.source, content_hash=change.prepared.content_hash) for change in changes]
    await store.keep(connection, target.workspace_id, held, [change.prepared.title for change in changes])
    languages = {row.language for change in changes for row in change.prepared.rows}
    await workspaces.add_languages(connection, target, languages)


async def _carry_out(
    connection: AsyncConnection,
    workspace_id: int,
    plan: Matching,
    model: StoredModel | None,
    literals: Mapping[bytes, str],
) -> int:
    await memories.retire(connection, workspace_id, plan.retired)
    caught = [chunk.memory_id for chunk, row in plan.kept if row.quarantined and not chunk.released]
    await memories.mark_retired(connection, workspace_id, caught, reason=memories.QUARANTINED)
    pairs = [(chunk, row) for chunk, row in plan.kept if chunk.released or not row.quarantined]
    kept = [replace(row, memory_id=chunk.memory_id) for chunk, row in pairs]
    revived = [row for (chunk, _), row in zip(pairs, kept, strict=True) if not chunk.live]
    moving = [chunk.memory_id for chunk, row in pairs if chunk.ordinal != row.memory.ordinal]
    await store.park(connection, workspace_id, moving)
    await memories.update(connection, workspace_id, kept, revive=True)
    await memories.insert(connection, workspace_id, plan.new)
    findable = [row for row in plan.new if not row.quarantined]
    await lexical_index.index(connection, workspace_id, [row.memory_id for row in (*kept, *findable)])
    await links.add(connection, workspace_id, [Link(newer, older, SUPERSEDES) for newer, older in plan.replaced])
    return await _give_vectors(connection, workspace_id, [*revived, *findable], model, literals)


async def _give_vectors(
    connection: AsyncConnection,
    workspace_id: int,
    rows: Sequence[MemoryRow],
    model: StoredModel | None,
    literals: Mapping[bytes, str],
) -> int:
    """How many of these memories have to wait for their vector."""
    ready = [row for row in rows if model is not None and row.content_hash in literals]
    given: set[UUID] = set()
    if model is not None and ready:
        ids = [row.memory_id for row in ready]
        if await vectors.write(connection, model, workspace_id, ids, [literals[row.content_hash] for row in ready]):
            given = set(ids)
    waiting: list[UUID] = [row.memory_id for row in rows if row.memory_id not in given]
    if waiting:
        await vectors.wait_for_vectors(connection, workspace_id, waiting)
        await enqueue(connection, EMBED)
    return len(waiting)


def _outcome(status: str, prepared: Prepared, new: Sequence[MemoryRow] = ()) -> FileOutcome:
    return FileOutcome(
        path=prepared.title,
        status=status,
        chunks=len(prepared.rows),
        stored=len(new),
        tokens=sum(row.tokens for row in new),
        left_out=prepared.left_out,
        quarantined=sum(row.quarantined for row in prepared.rows),
    )
