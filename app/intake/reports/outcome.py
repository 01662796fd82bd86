"""An ingestion: its options, its state, its outcome, and the log of past ingestions."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from uuid import UUID

import msgspec

from app.errors import InvalidInput, QuotaReached
from app.foundation.db.database import Database
from app.foundation.models.protocols import EmbeddingProvider, TokenCounter
from app.intake.reports import store
from app.storage.memories.sources import KnownFile
from app.storage.tenants.workspace import Workspace

NEW, CHANGED, MOVED, UNCHANGED, RETIRED, FAILED = "new", "changed", "moved", "unchanged", "retired", "failed"
_STATUSES = (NEW, CHANGED, MOVED, UNCHANGED, RETIRED, FAILED)
_MOST_FILES = 2_000
"""Most files of one ingestion that the log names; the counts include all files."""
_KEPT = 500
"""Ingestions of a workspace that the log keeps; a new one replaces the oldest."""
LARGEST_PAGE = 200
OnProgress = Callable[[int, int, str], None]
"""Called with (files done, files found, path)."""


@dataclass(frozen=True, slots=True, kw_only=True)
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
    left_out: int = 0
    """Chunks of machine output that were not stored."""
    quarantined: int = 0
    """Chunks that instruct their reader: they are stored and shown to people, but never retrieved."""
    reason: str = ""
    """The reason of a failure, and its remedy."""
    skipped: tuple[str, ...] = ()
    """Lines of a session's log that could not be read, each with its reason."""
    notes: tuple[str, ...] = ()
    """Remarks on the file for a person, such as the id under which its session is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingestion:
    """The outcome of every file of one ingestion."""

    outcomes: tuple[FileOutcome, ...]
    seconds: float
    dry_run: bool = False
    pending: int = 0
    """Chunks that were stored without a vector: a worker or `priors store backfill` embeds them."""
    degraded: str = ""
    """The reason why these chunks have no vector."""
    no_room: bool = False
    """True if the workspace had no room for a file: another ingestion tries it again."""

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
    def left_out(self) -> int:
        """Chunks of machine output that were not stored."""
        return sum(outcome.left_out for outcome in self.outcomes)

    @property
    def failed(self) -> tuple[FileOutcome, ...]:
        """Files that could not be ingested, each with its reason."""
        return tuple(outcome for outcome in self.outcomes if outcome.status == FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """The parts and options of an ingestion."""

    database: Database
    provider: EmbeddingProvider
    counter: TokenCounter
    workspace: Workspace
    language: str | None = None
    """Language of the files; None stands for the workspace's."""
    max_file_bytes: int
    mask: bool = True
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

    intake: Intake
    language: str
    """Text search configuration of the files."""
    started: float = field(default_factory=time.perf_counter)
    total: int = 0
    """Number of files."""
    known: dict[str, KnownFile] = field(default_factory=dict)
    """Files by path: the live file, or else the file that was retired last."""
    by_hash: dict[bytes, list[KnownFile]] = field(default_factory=dict)
    """Live files that no longer exist at their path, by content: a moved file came from one of them."""
    log_hashes: dict[str, bytes] = field(default_factory=dict)
    """The hash of each log of sessions when it was read last, by its path."""
    named: frozenset[Path] = frozenset()
    """The given paths, resolved."""
    dates: dict[Path, datetime] = field(default_factory=dict)
    """The date of the judgement beside each file that has a dated one: the file is of that time if it states none."""
    outcomes: list[FileOutcome] = field(default_factory=list)
    retitled: list[UUID] = field(default_factory=list)
    """Memories that need the vector of their new title or text, and new turns of sessions."""
    pending: int = 0
    """Number of chunks that have no vector yet."""
    degraded: str = ""
    """The reason why these chunks have no vector."""
    no_room: bool = False
    """True if the workspace had no room for a file."""

    def note_no_room(self, path: str, error: QuotaReached) -> None:
        """Adds the outcome of a file for which the workspace had no room."""
        self.no_room = True
        self.note(FileOutcome(path=path, status=FAILED, reason=str(error)))

    def note(self, outcome: FileOutcome) -> None:
        """Adds the outcome of a file, and reports the progress."""
        self.outcomes.append(outcome)
        self.intake.on_progress(len(self.outcomes), max(self.total, len(self.outcomes)), outcome.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedIngestion:
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


async def log_ingestion(state: IngestionState) -> Ingestion:
    """Returns the outcome of all files; logs it unless all are unchanged or it is a dry run."""
    intake = state.intake
    ingestion = Ingestion(
        outcomes=tuple(state.outcomes),
        seconds=time.perf_counter() - state.started,
        dry_run=intake.dry_run,
        pending=state.pending,
        degraded=state.degraded,
        no_room=state.no_room,
    )
    told = [outcome for outcome in ingestion.outcomes if outcome.status != UNCHANGED]
    told.sort(key=lambda outcome: outcome.status != FAILED)
    if told and not intake.dry_run:
        values = {
            "seconds": ingestion.seconds,
            "counts": msgspec.json.encode({status: n for status, n in ingestion.counts.items() if n}).decode(),
            "outcomes": msgspec.json.encode(told[:_MOST_FILES]).decode(),
            "degraded": ingestion.degraded,
        }
        async with intake.database.session(intake.workspace) as session:
            await store.log_ingestion(session, values, kept=_KEPT)
    return ingestion


async def list_ingestions(
    database: Database, *, workspace: Workspace, before: UUID | None = None, failed: bool = False, limit: int = 20
) -> Sequence[LoggedIngestion]:
    """Returns the ingestions before the given one, newest first; with `failed` only those with failed files.

    Raises:
        InvalidInput: the limit is out of range.
    """
    if not 1 <= limit <= LARGEST_PAGE:
        raise InvalidInput("limit", f"must be from 1 to {LARGEST_PAGE}")
    async with database.session(workspace, reading=True) as session:
        rows = await store.logged_ingestions(session, before=before, failed=failed, limit=limit)
    return [
        LoggedIngestion(**{**row._asdict(), "outcomes": tuple(FileOutcome(**outcome) for outcome in row.outcomes)})
        for row in rows
    ]
