"""The verbs that show the log of recalls."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from app.errors import NotFound, check
from app.foundation.db.database import Database
from app.foundation.text.data import unstorable
from app.foundation.values import frozen
from app.storage.memories.memory import in_utc
from app.storage.recalls import store
from app.storage.recalls.store import LoggedRecall, LoggedSummary, RecallDay, RecallFilters
from app.storage.tenants.workspace import Workspace


@frozen
class Recalls:
    """The logged recalls of a database."""

    database: Database

    async def get(self, workspace: Workspace, recall_id: UUID) -> LoggedRecall:
        """Returns one logged recall with its hits.

        Raises:
            NotFound: the workspace has no such recall.
        """
        async with self.database.session(workspace, transaction=False) as session:
            found = await store.find(session, recall_id)
        if found is None:
            raise NotFound(f"there is no recall {recall_id} in workspace {workspace.name}")
        return found

    async def page(
        self, workspace: Workspace, asked: RecallFilters, *, limit: int = 50, before: UUID | None = None
    ) -> Sequence[LoggedSummary]:
        """Returns logged recalls that meet every condition, the latest first; those after `before` on the next page.

        Raises:
            InvalidInput: a text or moment that the log cannot have.
        """
        asked = _check_filters(asked)
        async with self.database.session(workspace, transaction=False) as session:
            return await store.page(session, asked, limit=limit, before=before)

    async def days(self, workspace: Workspace, count: int) -> Sequence[RecallDay]:
        """Returns the latest days in UTC, today the last, each with its recalls; trials do not count."""
        today = datetime.now(UTC).date()
        asked = [today - timedelta(days=back) for back in reversed(range(count))]
        async with self.database.session(workspace, transaction=False) as session:
            found = await store.days_since(session, asked[0])
        return [found.get(day, RecallDay(day=day)) for day in asked]


def _check_filters(asked: RecallFilters) -> RecallFilters:
    """Returns the conditions with their moments in UTC.

    Raises:
        InvalidInput: a text or moment that the log cannot have.
    """
    check(unstorable(asdict(asked)))
    since, until = (None if moment is None else in_utc(moment) for moment in (asked.since, asked.until))
    return replace(asked, since=since, until=until)
