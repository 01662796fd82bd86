"""The state of an ingestion: what it takes in, what it has found, and what became of each file."""

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from app.db.database import Database
from app.intake.reports.outcome import FileOutcome
from app.memories.sources import KnownFile
from app.models.protocols import EmbeddingProvider, TokenCounter
from app.workspaces.workspace import Workspace

OnProgress = Callable[[int, int, str], None]
"""Called with (files done, files found, path)."""


@dataclass(slots=True, kw_only=True)
class IngestionState:
    """One ingestion in progress."""

    database: Database
    provider: EmbeddingProvider
    counter: TokenCounter
    workspace: Workspace
    language: str
    """Text search configuration of the files."""
    max_file_bytes: int
    mask: bool
    dry_run: bool
    total: int = 0
    on_progress: OnProgress = lambda _done, _total, _path: None
    known: dict[str, KnownFile] = field(default_factory=dict)
    """Files by path: the live one, or else the one retired last."""
    by_hash: dict[bytes, list[KnownFile]] = field(default_factory=dict)
    """Live files whose path is empty now, by content: where a moved file came from."""
    outcomes: list[FileOutcome] = field(default_factory=list)
    retitled: list[UUID] = field(default_factory=list)
    """Chunks that need the vector of their new title."""
    waiting: int = 0
    """Number of chunks that have no vector yet."""
    degraded: str = ""
    """The reason why they have none."""

    def note(self, outcome: FileOutcome) -> None:
        """Keep what became of a file, and tell whoever watches."""
        self.outcomes.append(outcome)
        self.on_progress(len(self.outcomes), max(self.total, len(self.outcomes)), outcome.path)
