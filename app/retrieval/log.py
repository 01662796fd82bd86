"""The log of recalls: stores recalls and the sections of runs, and returns one of them."""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import msgspec
import psycopg
import structlog

from app.db.session import Row, Session
from app.db.wire import Values
from app.memories.memory import first_id, new_id
from app.memories.tiers import Access
from app.retrieval.rank.presets import DEFAULT
from app.retrieval.recall import (
    TRIAL,
    Degradation,
    Explanation,
    Hit,
    LoggedSummary,
    Outcome,
    Query,
    Recall,
    RecallDay,
    RecallFilters,
)
from app.tracing import span
from app.workspaces.workspace import UNMADE, Workspace

COLUMNS = """workspace_id, recall_id, purpose, query, agent, run_id, parameters, mode, degraded, tokens, took_ms,
        hits"""
ROW = """%(workspace_id)s, %(recall_id)s, %(purpose)s, %(query)s, %(agent)s, %(run_id)s, %(parameters)s::jsonb,
        %(mode)s, %(degraded)s::jsonb, %(tokens)s, %(took_ms)s, jsonb_array_length(%(hits)s::jsonb)"""
LOG = f"INSERT INTO recalls ({COLUMNS}) VALUES ({ROW})"  # noqa: S608 - constants
# It reads `recalls` so that the node of the workspace makes the rows. Otherwise the coordinator of a cluster would make
# them, send them by COPY, and commit in two phases.
LOG_HITS = """
INSERT INTO recall_hits AS h (workspace_id, recall_id, rank, memory_id, score, explain)
SELECT r.workspace_id, r.recall_id, rank, memory_id, score, explain
FROM recalls r CROSS JOIN jsonb_to_recordset(%(hits)s::jsonb)
    AS hit(rank smallint, memory_id uuid, score real, explain jsonb)
WHERE r.workspace_id = %(workspace_id)s AND r.recall_id = %(recall_id)s
RETURNING h.rank
"""
IMPORTED = "import"
"""The purpose of a recall that an earlier harness made."""
HAS_IMPORTED = """
SELECT EXISTS (
    SELECT FROM recalls WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s AND purpose = %(purpose)s
)
"""

# A call that saw the run's latest section replaces it; one that saw an older one writes nothing, and looks again. The
# two statements after it find no row then.
LOG_SECTION = """
INSERT INTO run_sections AS s (workspace_id, run_id, recall_id, blocks)
VALUES (%(workspace_id)s, %(run_id)s, %(recall_id)s, %(blocks)s::jsonb)
ON CONFLICT (workspace_id, run_id) DO UPDATE
SET recall_id = EXCLUDED.recall_id, blocks = EXCLUDED.blocks, updated_at = EXCLUDED.updated_at
WHERE s.recall_id = %(continues)s
"""
LOG_WITH_SECTION = f"""
INSERT INTO recalls AS r ({COLUMNS})
SELECT {ROW} FROM run_sections s
WHERE s.workspace_id = %(workspace_id)s AND s.run_id = %(run_id)s AND s.recall_id = %(recall_id)s
RETURNING r.recall_id
"""  # noqa: S608 - constants

LATEST_SECTION = """
SELECT recall_id, blocks FROM run_sections WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s
"""

LOGGED_RECALL = """
SELECT recall_id, purpose, query, agent, run_id, parameters, mode, degraded, tokens, took_ms, created_at
FROM recalls WHERE workspace_id = %(workspace_id)s AND recall_id = %(recall_id)s
"""

LOGGED_HITS = """
SELECT h.rank, h.memory_id, coalesce(m.title, '') AS title, h.score, h.explain
FROM recall_hits h LEFT JOIN memories m USING (workspace_id, memory_id)
WHERE h.workspace_id = %(workspace_id)s AND h.recall_id = %(recall_id)s ORDER BY h.rank
"""

# Ids of recalls grow with time, so that their order and a range of them need no other index.
LIST = """
SELECT recall_id, purpose, query, agent, run_id, mode, degraded, tokens, took_ms, created_at, hits
FROM recalls WHERE workspace_id = %(workspace_id)s{conditions} ORDER BY recall_id DESC LIMIT %(limit)s
"""
CONDITIONS = {
    "before": "recall_id < %(before)s",
    "text": "position(lower(%(text)s) IN lower(query)) > 0",
    "agent": "agent = %(agent)s",
    "run_id": "run_id = %(run_id)s",
    "mode": "mode = %(mode)s",
    "purpose": "purpose = %(purpose)s",
    "since": "recall_id >= %(since)s",
    "until": "recall_id < %(until)s",
}
"""The SQL of each condition of the log, by its name."""
OUTCOMES: Mapping[Outcome, str] = {"empty": "hits = 0", "degraded": "degraded <> '[]'"}

DAYS = """
SELECT (created_at AT TIME ZONE 'UTC')::date AS day, count(*)::int AS recalls,
    count(*) FILTER (WHERE hits = 0)::int AS empty, count(*) FILTER (WHERE degraded <> '[]')::int AS degraded,
    percentile_cont(0.95) WITHIN GROUP (ORDER BY took_ms) AS p95_ms
FROM recalls
WHERE workspace_id = %(workspace_id)s AND recall_id >= %(first)s AND purpose <> ALL(%(others)s::text[])
GROUP BY 1
"""

FORGET_RUNS = """
WITH sections AS (
    DELETE FROM run_sections WHERE workspace_id = %(workspace_id)s AND run_id = ANY(%(run_ids)s::text[])
)
DELETE FROM recalls WHERE workspace_id = %(workspace_id)s AND run_id = ANY(%(run_ids)s::text[])
"""

# Each hit can be used once, however often the run's output or notes are sent. Locks are taken in the order of ids.
MARK_USED = """
WITH given AS MATERIALIZED (
    SELECT h.recall_id, h.rank FROM recalls r JOIN recall_hits h USING (workspace_id, recall_id)
    WHERE r.workspace_id = %(workspace_id)s AND r.run_id = %(run_id)s AND h.memory_id = ANY(%(ids)s::uuid[])
        AND NOT h.used
    ORDER BY h.memory_id, h.recall_id, h.rank FOR UPDATE OF h
)
UPDATE recall_hits h SET used = true FROM given
WHERE h.workspace_id = %(workspace_id)s AND h.recall_id = given.recall_id AND h.rank = given.rank
RETURNING h.memory_id
"""

COUNTED_AT_ONCE = 500
"""Recalls that are counted in one transaction. With ten hits each, of 1,827 memories, they take 111 to 152 ms (4 times,
2 cores, load 8)."""
# A recall whose transaction ends late is not counted yet, whatever its id. Another worker skips those that are taken.
TAKE_UNCOUNTED = """
WITH taken AS MATERIALIZED (
    SELECT recall_id FROM recalls WHERE workspace_id = %(workspace_id)s AND NOT counted
    ORDER BY recall_id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
), marked AS (
    UPDATE recalls r SET counted = true FROM taken
    WHERE r.workspace_id = %(workspace_id)s AND r.recall_id = taken.recall_id
    RETURNING r.recall_id, r.purpose, r.created_at
)
SELECT h.memory_id, count(DISTINCT k.recall_id) AS count, max(k.created_at) AS latest
FROM marked k LEFT JOIN recall_hits h ON h.workspace_id = %(workspace_id)s AND h.recall_id = k.recall_id
    AND k.purpose <> ALL(%(others)s::text[])
GROUP BY h.memory_id
"""
UNCOUNTED_OF_ALL = """
SELECT workspace_id FROM workspaces w
WHERE workspace_id IN (SELECT r.workspace_id FROM recalls r WHERE NOT r.counted) ORDER BY 1
"""

logger = structlog.get_logger()
FORGET_USER = """
WITH asked AS (
    DELETE FROM recalls WHERE workspace_id = %(workspace_id)s AND user_id = %(user)s RETURNING recall_id
), sections AS (
    DELETE FROM run_sections WHERE workspace_id = %(workspace_id)s AND recall_id IN (SELECT recall_id FROM asked)
)
SELECT count(*) FROM asked
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A recall before it is logged."""

    workspace: Workspace
    query: Query
    """The query in the form that may be stored."""
    hits: tuple[Hit, ...]
    mode: str
    degraded: tuple[Degradation, ...]
    probability: float | None
    """The probability that the store speaks to the query; None without vectors of the measured model."""
    started: float
    """`time.perf_counter()` when the query came in."""

    @property
    def is_placed(self) -> bool:
        """False in a workspace that does not exist yet: a read does not make it."""
        return self.workspace.workspace_id != UNMADE


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSection:
    """A stored section, which continues the earlier ones of its run."""

    kept: tuple[UUID, ...]
    """The memories of the blocks that are also in the previous section."""
    blocks: Sequence[object]
    """The blocks of the section, which are stored as JSON."""
    continues: UUID | None
    """The recall that made the previous section; None if the run had none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedHit:
    """A hit of a logged recall."""

    rank: int
    memory_id: UUID
    title: str
    """The memory's present title."""
    score: float
    explain: Explanation


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRecall:
    """A logged recall."""

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


async def log(
    session: Session, finding: Finding, *, hits: Sequence[Hit], tokens: int | None, budget_tokens: int | None = None
) -> Recall:
    """Logs the recall of a finding with these hits, in the database and in a line of the service's log.

    If the workspace does not exist or the disk is full, only the line is written, and the recall is answered.
    """
    recall = _recall(finding, hits)
    try:
        if finding.is_placed:
            with span("recall.log", hits=len(hits)):
                await _insert(session, _record(finding, recall, tokens, budget_tokens=budget_tokens))
    except psycopg.errors.DiskFull as error:
        logger.warning("a recall is not in the log", recall_id=str(recall.recall_id), reason=str(error))
    _note(finding, recall)
    return recall


async def _insert(session: Session, record: Values) -> None:
    """Writes a recall with its hits. A crash of the server may lose the latest ones, so no answer waits for a disk."""
    await session.execute_lazily([LOG, LOG_HITS], record)


async def log_section(
    session: Session, finding: Finding, section: RunSection, *, hits: Sequence[Hit], tokens: int
) -> Recall | None:
    """Logs the recall as `log` does, and its run's new section.

    Returns None, and logs nothing, if another section of the run was logged after the one that this continues.
    """
    recall = _recall(finding, hits)
    record = _record(finding, recall, tokens, stable=True, kept=section.kept)
    record |= {"blocks": _json(section.blocks), "continues": section.continues}
    with span("recall.log", hits=len(hits)):
        if finding.is_placed:
            placed, *_ = await session.execute_lazily([LOG_SECTION, LOG_WITH_SECTION, LOG_HITS], record)
            if not placed:
                return None
    _note(finding, recall)
    return recall


async def latest_section(session: Session, run_id: str) -> Row | None:
    """Returns the run's latest stable section: its `recall_id` and `blocks`; None if the run has none yet."""
    return await session.row(LATEST_SECTION, {"run_id": run_id})


async def logged(session: Session, recall_id: UUID) -> LoggedRecall | None:
    """Returns a recall with its hits; None if there is none."""
    recall = await session.row(LOGGED_RECALL, {"recall_id": recall_id})
    if recall is None:
        return None
    hits = await session.rows(LOGGED_HITS, {"recall_id": recall_id})
    return LoggedRecall(
        **{**recall._asdict(), "degraded": _degradations(recall)},
        hits=tuple(LoggedHit(**hit._asdict()) for hit in hits),
    )


async def listed(session: Session, asked: RecallFilters, *, limit: int, before: UUID | None) -> list[LoggedSummary]:
    """Returns the recalls that meet every condition, the latest first."""
    since, until = (None if moment is None else first_id(moment) for moment in (asked.since, asked.until))
    values = {**asdict(asked), "before": before, "since": since, "until": until, "limit": limit}
    rows = await session.rows(list_statement(asked, before), values)
    return [LoggedSummary(**{**row._asdict(), "degraded": _degradations(row)}) for row in rows]


def list_statement(asked: RecallFilters, before: UUID | None) -> str:
    """Returns the statement that lists the recalls that meet these conditions."""
    given = {**asdict(asked), "before": before}
    conditions = [sql for name, sql in CONDITIONS.items() if given[name] is not None]
    conditions += [OUTCOMES[asked.outcome]] if asked.outcome else []
    return LIST.format(conditions="".join(f" AND {condition}" for condition in conditions))


async def days_since(session: Session, first: date) -> dict[date, RecallDay]:
    """Returns the days from this one on that had recalls; trials and imports do not count."""
    lowest = first_id(datetime.combine(first, datetime.min.time(), UTC))
    rows = await session.rows(DAYS, {"first": lowest, "others": [TRIAL, IMPORTED]})
    return {row.day: RecallDay(**row._asdict()) for row in rows}


def _degradations(row: Row) -> tuple[Degradation, ...]:
    return tuple(Degradation(**item) for item in row.degraded)


async def mark_used(session: Session, run_id: str, ids: Collection[UUID]) -> set[UUID]:
    """Marks the hits by which a run was given these memories as used; returns the memories of newly marked hits."""
    return set(await session.column(MARK_USED, {"run_id": run_id, "ids": sorted(ids)})) if ids else set()


async def log_imported(session: Session, run_id: str, *, task: str, agent: str | None, ids: Sequence[UUID]) -> None:
    """Logs once that an imported run was given these memories, in this order; their scores are unknown."""
    asked = {"run_id": run_id, "purpose": IMPORTED}
    if not ids or await session.value(HAS_IMPORTED, asked):
        return
    hits = [{"rank": rank, "memory_id": memory_id, "score": 0, "explain": {}} for rank, memory_id in enumerate(ids, 1)]
    unknown = {"parameters": "{}", "mode": "imported", "degraded": "[]", "tokens": None, "took_ms": 0}
    recall = {**asked, **unknown, "recall_id": new_id(), "query": task, "agent": agent, "hits": _json(hits)}
    await _insert(session, recall)


async def take_uncounted(session: Session) -> list[Access] | None:
    """Marks the earliest recalls that are not counted yet as counted, at most COUNTED_AT_ONCE.

    Returns the accesses of memories by them; None if no such recall is left. Trials and imports give none.
    """
    rows = await session.rows(TAKE_UNCOUNTED, {"limit": COUNTED_AT_ONCE, "others": [TRIAL, IMPORTED]})
    return [Access(**row._asdict()) for row in rows if row.memory_id is not None] if rows else None


async def uncounted_of_all(session: Session) -> list[int]:
    """Returns the workspaces with recalls that are not counted yet."""
    return await session.column(UNCOUNTED_OF_ALL)


async def forget_runs(session: Session, run_ids: Sequence[str]) -> None:
    """Removes the recalls of these runs, with their hits and sections."""
    await session.execute(FORGET_RUNS, {"run_ids": list(run_ids)})


def _recall(finding: Finding, hits: Sequence[Hit]) -> Recall:
    took_ms = (time.perf_counter() - finding.started) * 1000
    return Recall(
        recall_id=new_id(),
        hits=tuple(hits),
        mode=finding.mode,
        degraded=finding.degraded,
        took_ms=took_ms,
        query=finding.query,
        workspace=finding.workspace,
        probability=finding.probability,
    )


OPTIONS = ("weights", "min_probability", "half_life_days", "now", "rerank")
"""Options of a query that the log has where they were given."""


def _record(finding: Finding, recall: Recall, tokens: int | None, **more: object) -> dict[str, Any]:
    """Returns the parameters for the statement that stores the recall; `more` are further ones.

    A recall by the workspace's own weights names them as `fitted`.
    """
    query = finding.query
    if query.preset == DEFAULT.name and finding.workspace.weights:
        more["fitted"] = finding.workspace.weights
    given = {name: getattr(query, name) for name in OPTIONS} | more
    always = {"k": query.k, "preset": query.preset, "language": query.language, "filters": query.filters}
    hits = [
        {"rank": place, "memory_id": hit.memory.memory_id, "score": hit.score, "explain": hit.logged}
        for place, hit in enumerate(recall.hits, start=1)
    ]
    return {
        **{name: getattr(query, name) for name in ("purpose", "agent", "run_id")},
        **{name: getattr(recall, name) for name in ("recall_id", "mode", "took_ms")},
        "query": query.text,
        "parameters": _json({**always, **{name: value for name, value in given.items() if value is not None}}),
        "degraded": _json(recall.degraded),
        "tokens": tokens,
        "hits": _json(hits),
    }


def _note(finding: Finding, recall: Recall) -> None:
    """Writes a line of the service's log."""
    facts = {"purpose": finding.query.purpose, "mode": finding.mode, "hits": len(recall.hits)}
    facts |= {"recall_id": str(recall.recall_id), "took_ms": round(recall.took_ms, 1)}
    if finding.degraded:
        logger.warning("recall", degraded=[f"{item.arm}: {item.reason}" for item in finding.degraded], **facts)
    else:
        logger.info("recall", **facts)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


async def forget_user(session: Session, user: str) -> int:
    """Removes the recalls that were asked for a user, with their hits and sections; returns their number."""
    return int(await session.value(FORGET_USER, {"user": user}))
