"""The verbs that keep and show what became of the files of past ingestions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.db.database import Database
from app.errors import InvalidInput
from app.intake.reports import store
from app.intake.reports.outcome import FAILED, UNCHANGED, FileOutcome, Ingestion
from app.workspaces.workspace import Workspace

MOST_FILES = 2_000
"""Logged files of one ingestion, as many as somebody may read; the counts are of all."""
KEPT = 500
"""Logged ingestions of a workspace: older ones leave the log as new ones come."""
LARGEST_PAGE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedIngestion:
    """A past ingestion."""

    ingestion_id: UUID
    finished_at: datetime
    seconds: float
    counts: Mapping[str, int]
    """Files by status."""
    outcomes: tuple[FileOutcome, ...]
    """The outcomes of files that were not unchanged, the failed ones first."""
    degraded: str
    """The reason why chunks were stored without vectors."""


async def log_ingestion(database: Database, workspace: Workspace, ingestion: Ingestion) -> None:
    """Log what became of the files, unless the ingestion found nothing new."""
    told = [outcome for outcome in ingestion.outcomes if outcome.status != UNCHANGED]
    told.sort(key=lambda outcome: outcome.status != FAILED)
    if ingestion.dry_run or not told:
        return
    async with database.session(workspace) as session:
        await store.log_ingestion(session, ingestion, told[:MOST_FILES], kept=KEPT)


async def list_ingestions(
    database: Database, *, workspace: Workspace, before: UUID | None = None, failed: bool = False, limit: int = 20
) -> Sequence[LoggedIngestion]:
    """Returns past ingestions, newest first: those `before` one, and with `failed` only those with files that failed.

    Raises:
        InvalidInput: a limit out of range.
    """
    if not 1 <= limit <= LARGEST_PAGE:
        raise InvalidInput("limit", f"must be from 1 to {LARGEST_PAGE}")
    async with database.session(workspace, transaction=False) as session:
        rows = await store.logged_ingestions(session, before=before, failed=failed, limit=limit)
    return [
        LoggedIngestion(
            ingestion_id=row.ingestion_id,
            finished_at=row.finished_at,
            seconds=row.seconds,
            counts=row.counts,
            outcomes=tuple(FileOutcome(**outcome) for outcome in row.outcomes),
            degraded=row.degraded,
        )
        for row in rows
    ]
