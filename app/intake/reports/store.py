"""An ingestion with its options, state and outcome, and the SQL of report files and of the log of ingestions."""

import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import msgspec
import structlog

from app.errors import DatabaseUnavailable, PriorsError, StorageFull
from app.foundation.db.database import Database
from app.foundation.db.session import DECIDE, Row, Session
from app.foundation.models.protocols import EmbeddingProvider, TokenCounter
from app.foundation.values import frozen
from app.intake.cases import store as judgements
from app.storage.index.models import StoredModel
from app.storage.index.vectors import Passages, PassageVector
from app.storage.memories import sources
from app.storage.memories import store as memories
from app.storage.memories.memory import MemoryRow, NewMemory, new_id
from app.storage.memories.sources import KnownFile, known_parts
from app.storage.memories.store import as_json
from app.storage.tenants.workspace import Workspace

NEW, CHANGED, MOVED, UNCHANGED, RETIRED, FAILED = "new", "changed", "moved", "unchanged", "retired", "failed"
LEFT_OUT = "left_out"
"""The status of a file that is no report: by its suffix, or because it states nothing."""
_STATUSES = (NEW, CHANGED, MOVED, UNCHANGED, RETIRED, FAILED, LEFT_OUT)
_LOG_ORDER = {FAILED: 0, LEFT_OUT: 2}
_MOST_FILES = 2_000
"""Most files of one ingestion that the log names; the counts include all files."""
_KEPT = 500
"""Ingestions of a workspace that the log keeps; a new one replaces the oldest."""
logger = structlog.get_logger()
_T = TypeVar("_T")
OnProgress = Callable[[int, int, str], None]
"""Called with (files done, files found, path)."""


@frozen
class FileOutcome:
    """The outcome of one file."""

    path: str
    status: str
    """One of _STATUSES."""
    chunks: int = 0
    """Live chunks of the file now, or the turns of its sessions; for a retired file, its live chunks before."""
    stored: int = 0
    """Number of new chunks or turns."""
    tokens: int = 0
    """Model tokens of the stored chunks."""
    noise: int = 0
    """Chunks of machine output that were not stored."""
    quarantined: int = 0
    """Chunks that instruct their reader: they are stored and shown to people, but never retrieved."""
    reason: str = ""
    """The reason of a failure, and its remedy; or why a file was left out."""
    suffix: str = ""
    """The suffix by which a file was left out; "" where its content is the reason."""
    skipped: tuple[str, ...] = ()
    """Lines of a session's log, or of records, that could not be read, each with its reason."""
    notes: tuple[str, ...] = ()
    """Remarks on the file for a person, such as the id under which its session is stored."""


@dataclass(slots=True, kw_only=True)
class Ingestion:
    """The outcome of every file of one ingestion."""

    outcomes: list[FileOutcome] = field(default_factory=list)
    seconds: float = 0.0
    dry_run: bool = False
    pending: int = 0
    """Chunks that were stored without a vector: a worker or `priors store backfill` embeds them."""
    degraded: str = ""
    """The reason why these chunks have no vector."""
    sliced: dict[str, int] = field(default_factory=dict)
    """Large files that were stored before their vectors are made, slice by slice, and the number of their chunks."""

    @property
    def counts(self) -> dict[str, int]:
        """Number of files by status; every status has an entry."""
        found = Counter(outcome.status for outcome in self.outcomes)
        return {status: found[status] for status in _STATUSES}

    @property
    def chunks(self) -> int:
        """Live chunks of the files that were read."""
        return sum(outcome.chunks for outcome in self.outcomes if outcome.status not in {RETIRED, FAILED})

    @property
    def stored(self) -> int:
        """Number of new chunks."""
        return sum(outcome.stored for outcome in self.outcomes)

    @property
    def tokens(self) -> int:
        """Model tokens of the stored chunks."""
        return sum(outcome.tokens for outcome in self.outcomes)

    @property
    def quarantined(self) -> int:
        """Chunks that are stored and never retrieved until a person releases them."""
        return sum(outcome.quarantined for outcome in self.outcomes)

    @property
    def noise(self) -> int:
        """Chunks of machine output that were not stored."""
        return sum(outcome.noise for outcome in self.outcomes)

    @property
    def logged(self) -> tuple[FileOutcome, ...]:
        """The files that are not unchanged: the failed ones first, those that were left out last."""
        found = [outcome for outcome in self.outcomes if outcome.status != UNCHANGED]
        return tuple(sorted(found, key=lambda outcome: _LOG_ORDER.get(outcome.status, 1)))

    @property
    def has_changes(self) -> bool:
        """True if a file was stored, changed, moved or retired."""
        return any(outcome.status not in {UNCHANGED, FAILED, LEFT_OUT} for outcome in self.outcomes)

    @property
    def suffixes(self) -> Counter[str]:
        """Number of the files that were left out by their suffix."""
        return Counter(outcome.suffix for outcome in self.outcomes if outcome.suffix)

    @property
    def failed(self) -> tuple[FileOutcome, ...]:
        """Files that could not be ingested, each with its reason."""
        return tuple(outcome for outcome in self.outcomes if outcome.status == FAILED)


@frozen
class IngestionOptions:
    """The options of an ingestion."""

    language: str | None = None
    """Language of the files; None stands for the workspace's."""
    tags: tuple[str, ...] = ()
    """Tags of all chunks, besides the names of their folders."""
    dry_run: bool = False
    read_logs: dict[Path, tuple[int, int]] = field(default_factory=dict)
    """Size and time of change of each log of sessions that was read with this value: a watch, which uses it for every
    ingestion, reads a log again when they are others."""
    on_progress: OnProgress = lambda _done, _total, _path: None


@dataclass(slots=True, kw_only=True)
class IngestionState:
    """One ingestion in progress."""

    database: Database
    provider: EmbeddingProvider
    counter: TokenCounter
    workspace: Workspace
    options: IngestionOptions
    language: str
    """Text search configuration of the files."""
    result: Ingestion
    """The outcome so far."""
    started: float = field(default_factory=time.perf_counter)
    total: int = 0
    """Number of files."""
    known: dict[str, KnownFile] = field(default_factory=dict)
    """Files by path: the live file, or else the file that was retired last."""
    by_hash: dict[bytes, list[KnownFile]] = field(default_factory=dict)
    """Live files that no longer exist at their path, by content: a moved file came from one of them."""
    log_hashes: dict[str, bytes] = field(default_factory=dict)
    """The hash of each log of sessions when it was read last, by its path."""
    dates: dict[Path, datetime] = field(default_factory=dict)
    """The date of the judgement beside each file that has a dated one: the file is of that time if it states none."""
    retitled: list[UUID] = field(default_factory=list)
    """Memories that need the vector of their new title or text, and new turns of sessions."""

    def note(self, outcome: FileOutcome) -> None:
        """Adds the outcome of a file, and reports the progress."""
        self.result.outcomes.append(outcome)
        done = len(self.result.outcomes)
        self.options.on_progress(done, max(self.total, done), outcome.path)


STOPS = (DatabaseUnavailable, StorageFull)
"""Errors that stop an ingestion, because every file after it would fail alike; any other is of one file."""


async def or_failure(path: str, work: Awaitable[_T]) -> _T | FileOutcome:
    """Returns what the work on a file returns, or the outcome of a file that could not be taken in.

    Whatever the class of an error, it is the failure of this file alone, unless every other would fail alike.
    """
    try:
        return await work
    except STOPS:
        raise
    except Exception as error:  # noqa: BLE001 - `reason_of` logs it
        return FileOutcome(path=path, status=FAILED, reason=reason_of(error, path))


def reason_of(error: Exception, path: str) -> str:
    """Returns the reason of a file's failure; an error that nobody foresaw is logged."""
    if isinstance(error, PriorsError):
        return str(error)
    logger.error("a file could not be taken in", path=path, exc_info=error)
    return f"could not be taken in ({type(error).__name__}: {error}); please report it"


class LoggedIngestion(msgspec.Struct, frozen=True, kw_only=True, rename={"ingestion_id": "id", "outcomes": "files"}):
    """A past ingestion."""

    ingestion_id: UUID
    finished_at: datetime
    seconds: float
    counts: Mapping[str, int]
    """Number of files by status."""
    outcomes: tuple[FileOutcome, ...]
    """The outcomes of all but the unchanged files, the failed ones first."""
    degraded: str
    """The reason why chunks were stored without vectors."""


_LIVE_CHUNKS = """
SELECT memory_id, title, body, language, tokens, metadata FROM memories
WHERE workspace_id = %(workspace_id)s AND source_id = %(source_id)s AND kind = 'chunk' AND valid_until IS NULL
"""

_DOCUMENT = """
SELECT s.uri, s.title AS path, m.memory_id, m.ordinal, m.body, m.metadata, m.occurred_at
FROM sources s JOIN memories m ON m.workspace_id = s.workspace_id AND m.source_id = s.source_id
    AND m.kind = 'chunk' AND m.valid_until IS NULL
WHERE s.workspace_id = %(workspace_id)s AND s.source_id = %(source_id)s AND s.kind = 'report' AND s.retired_at IS NULL
ORDER BY m.ordinal
"""
_LEARNT_FROM = """
SELECT DISTINCT source_id FROM cue_evidence
WHERE workspace_id = %(workspace_id)s AND source_id = ANY(%(ids)s::uuid[])
"""

_KNOWN_VECTORS = """
SELECT m.content_hash, e.embedding::text AS vector, e.starts, e.ends, e.parts
FROM (
    SELECT DISTINCT ON (content_hash) memory_id, content_hash
    FROM memories JOIN {partition} USING (workspace_id, memory_id)
    WHERE workspace_id = %(workspace_id)s AND valid_until IS NULL AND content_hash = ANY(%(hashes)s::bytea[])
        AND NOT EXISTS (
            SELECT FROM pending_embeddings p
            WHERE p.workspace_id = %(workspace_id)s AND p.memory_id = memories.memory_id
        )
    ORDER BY content_hash, memory_id
) AS m
JOIN {partition} e ON e.workspace_id = %(workspace_id)s AND e.memory_id = m.memory_id
ORDER BY m.content_hash, e.passage
"""
"""All vectors of a memory with each of these texts; of one that lacks a part of them, none."""

LOG = """
INSERT INTO ingestions (workspace_id, ingestion_id, seconds, counts, outcomes, degraded)
VALUES (
    %(workspace_id)s, %(ingestion_id)s, %(seconds)s, %(counts)s::jsonb, %(outcomes)s::jsonb, %(degraded)s
)
"""

_FORGET = """
DELETE FROM ingestions WHERE workspace_id = %(workspace_id)s AND ingestion_id IN (
    SELECT ingestion_id FROM ingestions WHERE workspace_id = %(workspace_id)s ORDER BY ingestion_id DESC OFFSET %(kept)s
)
"""

_FORGET_FILES = """
DELETE FROM ingestions i WHERE i.workspace_id = %(workspace_id)s AND NOT EXISTS (
    SELECT FROM jsonb_array_elements(i.outcomes) AS outcome WHERE outcome ->> 'path' <> ALL(%(files)s::text[])
)
"""

_LOGGED = """
SELECT ingestion_id, finished_at, seconds, counts, outcomes, degraded FROM ingestions
WHERE workspace_id = %(workspace_id)s AND (%(before)s::uuid IS NULL OR ingestion_id < %(before)s)
    AND (NOT %(failed)s OR jsonb_exists(counts, 'failed'))
ORDER BY ingestion_id DESC LIMIT %(limit)s
"""


async def live_chunks(session: Session, source_id: UUID) -> list[MemoryRow]:
    """Returns the live chunks of a file with their texts and heading paths."""
    return [
        MemoryRow(
            memory_id=row.memory_id,
            memory=NewMemory(kind="chunk", title=row.title, body=row.body, metadata=row.metadata),
            source_id=source_id,
            language=row.language,
            tokens=row.tokens,
        )
        for row in await session.rows(_LIVE_CHUNKS, {"source_id": source_id})
    ]


async def document(session: Session, source_id: UUID) -> list[Row]:
    """Returns the live chunks of a file in their order, each with the file's path; none of a file that was deleted."""
    return await session.rows(_DOCUMENT, {"source_id": source_id})


async def read_for_decisions(session: Session, ids: Sequence[UUID], *, recording: Set[UUID] = frozenset()) -> None:
    """Asks for the decisions of these files: of those that look like `recording` one, and of those that had one."""
    learnt = set(await session.column(_LEARNT_FROM, {"ids": list(ids)}))
    for source_id in sorted(recording | learnt):
        await session.enqueue(
            DECIDE, lock=f"{DECIDE}:{source_id}", workspace_id=session.workspace_id, source_id=str(source_id)
        )


async def retire(session: Session, source_id: UUID) -> int:
    """Takes a deleted file's chunks out of retrieval; returns their number."""
    await sources.retire_file(session, source_id)
    await judgements.replace(session, {source_id: ()})
    await read_for_decisions(session, [source_id])
    chunks = await known_parts(session, [source_id], kind="chunk")
    return len(await memories.retire(session, [chunk.memory_id for chunk in chunks if chunk.live]))


async def known_vectors(session: Session, model: StoredModel, rows: Sequence[MemoryRow]) -> dict[bytes, Passages]:
    """Returns the vectors that the workspace already has for the text of these rows, by content hash."""
    statement = _KNOWN_VECTORS.format(partition=model.partition)
    given = {"hashes": list({row.content_hash for row in rows})}
    found: dict[bytes, list[PassageVector]] = defaultdict(list)
    for row in await session.rows(statement, given):
        found[bytes(row.content_hash)].append(PassageVector(row.vector, row.starts, row.ends, row.parts))
    return {**found}


async def log_ingestion(session: Session, ingestion: Ingestion) -> None:
    """Stores an ingestion, and deletes all but the latest of the workspace."""
    values = {
        "ingestion_id": new_id(),
        "seconds": ingestion.seconds,
        "counts": as_json({status: n for status, n in ingestion.counts.items() if n}),
        "outcomes": as_json(ingestion.logged[:_MOST_FILES]),
        "degraded": ingestion.degraded,
    }
    await session.execute(LOG, values)
    await session.execute(_FORGET, {"kept": _KEPT})


async def forget_ingestions(session: Session, files: Sequence[str]) -> None:
    """Removes the ingestions that stored nothing but these files from the log."""
    await session.execute(_FORGET_FILES, {"files": list(files)})


async def logged_ingestions(
    session: Session, *, before: UUID | None, failed: bool, limit: int
) -> list[LoggedIngestion]:
    """Returns the ingestions before the given one, newest first; with `failed` only those with failed files."""
    values = {"before": before, "failed": failed, "limit": limit}
    return await session.rows_as(LoggedIngestion, _LOGGED, values)
