"""Writes prepared files, each of them whole or not at all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from app.db.database import Database, again_after_deadlock
from app.db.session import EMBED, Session
from app.index import vectors
from app.index.indexing import enqueue_statistics, index_words
from app.index.models import StoredModel
from app.index.pending import queue_for_vectors
from app.intake.reports import store
from app.intake.reports.matching import Matching, matched
from app.intake.reports.outcome import CHANGED, NEW, UNCHANGED, FileOutcome
from app.intake.reports.prepare import Prepared
from app.links import store as links
from app.links.relations import SUPERSEDES, Link
from app.memories import sources
from app.memories import store as memories
from app.memories.memory import QUARANTINED, MemoryRow
from app.memories.sources import KnownFile
from app.workspaces import store as workspaces
from app.workspaces.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The result of a write."""

    outcomes: tuple[FileOutcome, ...]
    """One a file, in their order."""
    pending: int = 0
    """Number of their chunks that have no vector yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """A file whose content differs from what its source holds."""

    prepared: Prepared
    source: KnownFile
    plan: Matching

    @property
    def outcome(self) -> FileOutcome:
        """The outcome of the file."""
        return _outcome(CHANGED if self.source.live and self.source.content_hash else NEW, self.prepared, self.plan.new)


async def write_files(
    database: Database,
    workspace: Workspace,
    files: Sequence[Prepared],
    *,
    model: StoredModel | None,
    literals: Mapping[bytes, str],
) -> Written:
    """Make each file's source hold exactly its chunks: all of them in one transaction, or none.

    `literals` are vectors by content hash; a chunk that has none is queued for one.
    """

    async def attempt() -> tuple[list[_Change], int]:
        async with database.session(workspace) as session:
            changes = await _changes(session, files)
            if changes:
                await _note(session, workspace, changes)
            pending = await _carry_out(session, _together(changes), model, literals)
            if changes:
                await enqueue_statistics(session)
            return changes, pending

    changes, pending = await again_after_deadlock(attempt)
    outcomes = {change.prepared.uri: change.outcome for change in changes}
    return Written(
        outcomes=tuple(outcomes.get(file.uri) or _outcome(UNCHANGED, file) for file in files), pending=pending
    )


async def foreseen(
    database: Database, workspace: Workspace, files: Sequence[Prepared], known_files: Mapping[str, KnownFile]
) -> tuple[FileOutcome, ...]:
    """Returns what `write_files` would make of these files, of which some are known by path; nothing is written."""
    ids = [known_files[file.uri].source_id for file in files if file.uri in known_files]
    async with database.session(workspace, transaction=False) as session:
        known = await store.known_chunks(session, ids)

    def outcome(file: Prepared) -> FileOutcome:
        source = known_files.get(file.uri)
        plan = matched(file.rows, known[source.source_id] if source is not None else ())
        return _outcome(CHANGED if source is not None and source.live else NEW, file, plan.new)

    return tuple(outcome(file) for file in files)


async def _changes(session: Session, files: Sequence[Prepared]) -> list[_Change]:
    locked = await sources.locked_files(session, {file.uri: file.title for file in files})
    differing = [
        (file, source)
        for file in files
        if not ((source := locked[file.uri]).live and source.content_hash == file.content_hash)
    ]
    known = await store.known_chunks(session, [source.source_id for _, source in differing])
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


async def _note(session: Session, workspace: Workspace, changes: Sequence[_Change]) -> None:
    held = [replace(change.source, content_hash=change.prepared.content_hash) for change in changes]
    await sources.keep_files(session, held, [change.prepared.title for change in changes])
    languages = {row.language for change in changes for row in change.prepared.rows}
    await workspaces.add_languages(session, workspace, languages)


async def _carry_out(
    session: Session,
    plan: Matching,
    model: StoredModel | None,
    literals: Mapping[bytes, str],
) -> int:
    await memories.retire(session, plan.retired)
    caught = [chunk.memory_id for chunk, row in plan.kept if row.quarantined and not chunk.released]
    await memories.mark_retired(session, caught, reason=QUARANTINED)
    pairs = [(chunk, row) for chunk, row in plan.kept if chunk.released or not row.quarantined]
    kept = [replace(row, memory_id=chunk.memory_id) for chunk, row in pairs]
    revived = [row for (chunk, _), row in zip(pairs, kept, strict=True) if not chunk.live]
    moving = [chunk.memory_id for chunk, row in pairs if chunk.ordinal != row.memory.ordinal]
    await sources.park_chunks(session, moving)
    await memories.update(session, kept, revive=True)
    await memories.insert(session, plan.new)
    live = [row for row in plan.new if not row.quarantined]
    await index_words(session, [row.memory_id for row in (*kept, *live)])
    await links.add(session, [Link(newer, older, SUPERSEDES) for newer, older in plan.replaced])
    return await _store_vectors(session, [*revived, *live], model, literals)


async def _store_vectors(
    session: Session,
    rows: Sequence[MemoryRow],
    model: StoredModel | None,
    literals: Mapping[bytes, str],
) -> int:
    """Stores the vectors that are there; returns how many of these memories are queued for one."""
    ready = [row for row in rows if model is not None and row.content_hash in literals]
    given: set[UUID] = set()
    if model is not None and ready:
        ids = [row.memory_id for row in ready]
        if await vectors.write(session, model, ids, [literals[row.content_hash] for row in ready]):
            given = set(ids)
    lacking = [row.memory_id for row in rows if row.memory_id not in given]
    if lacking:
        await queue_for_vectors(session, lacking)
        await session.enqueue(EMBED)
    return len(lacking)


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
