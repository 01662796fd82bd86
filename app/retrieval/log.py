"""The verb that shows a logged recall."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from app.db.engine import Database
from app.errors import NotFound
from app.retrieval import store
from app.retrieval.recall import Degradation, Explanation
from app.workspaces import store as workspaces
from app.workspaces.workspace import checked_name


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedHit:
    """A memory that a recall gave, with its score as it was then."""

    rank: int
    memory_id: UUID
    title: str
    """As the memory is called now."""
    score: float
    explain: Explanation


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRecall:
    """A recall as it was logged."""

    recall_id: UUID
    purpose: str
    query: str
    agent: str | None
    run_id: str | None
    parameters: Mapping[str, Any]
    mode: str
    degraded: tuple[Degradation, ...]
    tokens: int | None
    took_ms: float
    created_at: datetime
    hits: tuple[LoggedHit, ...]


async def get_recall(database: Database, *, workspace: str, recall_id: UUID) -> LoggedRecall:
    """One logged recall with its hits.

    Raises:
        NotFound: the workspace has no such recall.
    """
    async with database.statements() as connection:
        target = await workspaces.find(connection, checked_name(workspace))
        found = None if target is None else await store.logged(connection, target.workspace_id, recall_id)
    if found is None:
        raise NotFound(f"there is no recall {recall_id} in workspace {workspace}")
    recall, hits = found
    return LoggedRecall(
        **{name: getattr(recall, name) for name in LoggedRecall.__slots__ if name not in {"degraded", "hits"}},
        degraded=tuple(Degradation(**item) for item in recall.degraded),
        hits=tuple(LoggedHit(**hit._mapping) for hit in hits),  # noqa: SLF001 - SQLAlchemy's documented name for it
    )
