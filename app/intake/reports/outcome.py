"""What became of each file of an ingestion."""

from collections import Counter
from dataclasses import dataclass

NEW, CHANGED, MOVED, UNCHANGED, RETIRED, FAILED = "new", "changed", "moved", "unchanged", "retired", "failed"
STATUSES = (NEW, CHANGED, MOVED, UNCHANGED, RETIRED, FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOutcome:
    """One file's fate."""

    path: str
    status: str
    """One of STATUSES."""
    chunks: int = 0
    """Live chunks that the file has now; for a retired file, those it had."""
    stored: int = 0
    """Chunks that were not known before."""
    tokens: int = 0
    """Model tokens of the stored chunks."""
    left_out: int = 0
    """Chunks of machine noise that were not kept."""
    quarantined: int = 0
    """Chunks that instruct their reader: stored, never retrieved, shown to people."""
    reason: str = ""
    """Why it failed, and how to mend it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingestion:
    """The fate of every file of one ingestion."""

    outcomes: tuple[FileOutcome, ...]
    seconds: float
    dry_run: bool = False
    waiting: int = 0
    """Chunks that were stored without a vector: a worker embeds them, or `priors backfill`."""
    degraded: str = ""
    """Why they have none."""

    @property
    def counts(self) -> dict[str, int]:
        """Files by status, every status named."""
        found = Counter(outcome.status for outcome in self.outcomes)
        return {status: found[status] for status in STATUSES}

    @property
    def chunks(self) -> int:
        """Live chunks of the files that were read."""
        return sum(outcome.chunks for outcome in self.outcomes if outcome.status not in {RETIRED, FAILED})

    @property
    def stored(self) -> int:
        """Chunks that were not known before."""
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
        """Chunks of machine noise that were not kept."""
        return sum(outcome.left_out for outcome in self.outcomes)

    @property
    def failed(self) -> tuple[FileOutcome, ...]:
        """Files that could not be ingested, each with its reason."""
        return tuple(outcome for outcome in self.outcomes if outcome.status == FAILED)
