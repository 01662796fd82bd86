"""The verbs that log a recall and show a logged one."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
import structlog

from app.db.database import Database
from app.errors import NotFound
from app.memories.memory import new_id
from app.retrieval import store
from app.retrieval.query import Query
from app.retrieval.recall import Degradation, Explanation, Hit, Recall
from app.workspaces.resolve import made
from app.workspaces.workspace import Workspace

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A recall before it is logged."""

    workspace: Workspace
    query: Query
    """As it may be stored."""
    hits: tuple[Hit, ...]
    mode: str
    degraded: tuple[Degradation, ...]
    started: float
    """`time.perf_counter()` when the query came in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSection:
    """A section that continues the earlier ones of its run, as it is stored."""

    kept: tuple[UUID, ...]
    """The memories of the blocks that the previous section had as well."""
    blocks: Sequence[object]
    """Encoded as JSON."""
    continues: UUID | None
    """The recall that made the previous section; None where the run had none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedHit:
    """A hit as it was given."""

    rank: int
    memory_id: UUID
    title: str
    """The memory's title of today."""
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


async def log(database: Database, finding: Finding, *, hits: Sequence[Hit], tokens: int | None) -> Recall:
    """Keep the recall with these of its hits, in the database and as a line of the log."""
    finding = await placed(database, finding)
    recall = _recall(finding, hits)
    async with database.session(finding.workspace, transaction=False) as session:
        await store.log(session, _record(finding.query, recall, tokens, _parameters(finding.query)))
    _note(finding, recall)
    return recall


async def log_section(
    database: Database, finding: Finding, section: RunSection, *, hits: Sequence[Hit], tokens: int
) -> Recall | None:
    """Keep the recall of a `placed` finding as `log` does, and its run's new section.

    None, and nothing is kept, where another section of the run was logged since the one that this continues.
    """
    recall = _recall(finding, hits)
    parameters = {**_parameters(finding.query), "stable": True, "kept": section.kept}
    record = _record(finding.query, recall, tokens, parameters)
    async with database.session(finding.workspace, transaction=False) as session:
        if not await store.log_section(session, record, _json(section.blocks), continues=section.continues):
            return None
    _note(finding, recall)
    return recall


async def get_recall(database: Database, *, workspace: Workspace, recall_id: UUID) -> LoggedRecall:
    """Returns one logged recall with its hits.

    Raises:
        NotFound: the workspace has no such recall.
    """
    async with database.session(workspace, transaction=False) as session:
        found = await store.logged(session, recall_id)
    if found is None:
        raise NotFound(f"there is no recall {recall_id} in workspace {workspace.name}")
    recall, hits = found
    return LoggedRecall(
        **{**recall._asdict(), "degraded": tuple(Degradation(**item) for item in recall.degraded)},
        hits=tuple(LoggedHit(**hit._asdict()) for hit in hits),
    )


async def placed(database: Database, finding: Finding) -> Finding:
    """Returns the finding in a workspace that exists: the first recall of a workspace makes it."""
    return replace(finding, workspace=await made(database, finding.workspace))


def _recall(finding: Finding, hits: Sequence[Hit]) -> Recall:
    took_ms = (time.perf_counter() - finding.started) * 1000
    return Recall(recall_id=new_id(), hits=tuple(hits), mode=finding.mode, degraded=finding.degraded, took_ms=took_ms)


def _parameters(query: Query) -> dict[str, Any]:
    given = {"weights": query.weights, "now": query.now, "rerank": query.rerank}
    return {
        "k": query.k,
        "preset": query.preset,
        "language": query.language,
        "filters": query.filters,
        **{name: value for name, value in given.items() if value is not None},
    }


def _record(query: Query, recall: Recall, tokens: int | None, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the recall as the store keeps it."""
    return {
        "recall_id": recall.recall_id,
        "purpose": query.purpose,
        "query": query.text,
        "agent": query.agent,
        "run_id": query.run_id,
        "parameters": _json(parameters),
        "mode": recall.mode,
        "degraded": _json(recall.degraded),
        "tokens": tokens,
        "took_ms": recall.took_ms,
        "hits": _json(
            [
                {"rank": place, "memory_id": hit.memory.memory_id, "score": hit.score, "explain": hit.logged}
                for place, hit in enumerate(recall.hits, start=1)
            ]
        ),
    }


def _note(finding: Finding, recall: Recall) -> None:
    """Write a line of the service's log."""
    facts = {
        "recall_id": str(recall.recall_id),
        "purpose": finding.query.purpose,
        "mode": finding.mode,
        "hits": len(recall.hits),
        "took_ms": round(recall.took_ms, 1),
    }
    if finding.degraded:
        logger.warning("recall", degraded=[f"{item.arm}: {item.reason}" for item in finding.degraded], **facts)
    else:
        logger.info("recall", **facts)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
