"""The log of recalls, and the sections of runs: their values and their SQL."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, date, datetime
from typing import Any, Literal
from uuid import UUID

import psycopg
from msgspec import Struct

from app.foundation.db.session import Row, Session
from app.foundation.db.wire import Values
from app.foundation.values import frozen
from app.storage.index.indexing import NAME
from app.storage.memories.memory import first_id, new_id
from app.storage.memories.store import Access, as_json
from app.storage.recalls.parts import ScoreParts, parts_of

TRIAL = "trial"
"""The purpose of a recall by which a person tries out what an agent would get."""
IMPORTED = "import"
"""The purpose of a recall that an earlier harness made."""


@frozen
class Degradation:
    """An arm that did not serve an answer, or did so only in part, with the reason."""

    arm: str
    reason: str
    silent: bool
    """True if the arm was left out completely."""


@frozen
class HitLink:
    """The link that brought a hit, or boosts it."""

    relation: str
    direction: str
    """`out` if the link leads from the hit to the other memory (it mentions that memory, is derived from it …); else
    `in`."""
    memory_id: UUID
    """The memory at the other end of the link, which is relevant to the query itself."""
    title: str = ""
    """The title of that memory; empty in the log, which stores no text of memories."""


Explanation = dict[str, float | HitLink | None]


Withholding = Literal["draw", "next", "room", "threshold"]
"""The reason why a memory that was found was not shown. A draw took its slot; it was the next candidate for the slot
that a draw took, which stayed empty; the budget or the wanted number left no room, or another hit says the same; or it
was not likely enough to matter."""


class WithheldMemory(Struct, frozen=True, kw_only=True, rename={"memory_id": "id"}):
    """A memory that a recall found and did not show."""

    rank: int
    """The slot that was to be its own, or that it was next for, from 1; of one that no draw withheld, its place among
    all that was found."""
    memory_id: UUID
    title: str = ""
    """The memory's present title, or the beginning of its text; empty in the log, which stores no text of memories."""
    score: float
    reason: Withholding
    propensity: float | None = None
    """The probability with which it was to be shown; of the next candidate, after its slot was drawn. None where no
    draw decided."""
    given_to: UUID | None = None
    """The next candidate, if a draw gave it the slot; its hit has the probability of that as its own."""


class LoggedHit(Struct, frozen=True, kw_only=True, rename={"memory_id": "id"}):
    """A hit of a logged recall."""

    rank: int
    memory_id: UUID
    title: str
    """The memory's present title, or the beginning of its text; empty for one that is no longer stored."""
    score: float
    explain: Explanation
    parts: ScoreParts
    """The score is the sum of these."""
    propensity: float | None
    """The probability with which it was to be shown; None where no draw decided."""


@frozen
class _Logged:
    recall_id: UUID
    purpose: str
    query: str
    agent: str | None
    run_id: str | None
    mode: str
    degraded: tuple[Degradation, ...]
    tokens: int | None
    took_ms: float
    created_at: datetime


@frozen
class LoggedRecall(_Logged):
    """A logged recall."""

    parameters: Mapping[str, Any]
    hits: tuple[LoggedHit, ...]
    withheld: tuple[WithheldMemory, ...]
    """Memories that were found for a run and not shown to it."""


@frozen
class LoggedSummary(_Logged):
    """A logged recall with the number of its hits."""

    hits: int


Outcome = Literal["empty", "degraded"]
"""A reason to look at a recall: it found nothing, or it was answered without an arm."""


@frozen
class RecallFilters:
    """Conditions of logged recalls; None is no condition."""

    text: str | None = None
    """A part of the query, in upper or lower case."""
    agent: str | None = None
    run_id: str | None = None
    mode: str | None = None
    purpose: str | None = None
    outcome: Outcome | None = None
    since: datetime | None = None
    until: datetime | None = None


@frozen
class RecallDay:
    """The recalls of one day in UTC."""

    day: date
    recalls: int = 0
    empty: int = 0
    """Recalls that found nothing."""
    degraded: int = 0
    p95_ms: float | None = None
    """Milliseconds; None for a day without recalls."""


_COLUMNS = """workspace_id, recall_id, purpose, query, agent, run_id, parameters, mode, degraded, tokens, took_ms,
        hits, withheld"""
_ROW = """%(workspace_id)s, %(recall_id)s, %(purpose)s, %(query)s, %(agent)s, %(run_id)s, %(parameters)s::jsonb,
        %(mode)s, %(degraded)s::jsonb, %(tokens)s, %(took_ms)s, jsonb_array_length(%(hits)s::jsonb),
        %(withheld)s::jsonb"""
_LOG = f"INSERT INTO recalls ({_COLUMNS}) VALUES ({_ROW})"  # noqa: S608 - constants
# It reads `recalls` so that the node of the workspace makes the rows. Otherwise the coordinator of a cluster would make
# them, send them by COPY, and commit in two phases.
_LOG_HITS = """
INSERT INTO recall_hits AS h (workspace_id, recall_id, rank, memory_id, score, explain, propensity, shown)
SELECT r.workspace_id, r.recall_id, rank, memory_id, score, explain, propensity, shown
FROM recalls r CROSS JOIN jsonb_to_recordset(%(hits)s::jsonb)
    AS hit(rank smallint, memory_id uuid, score real, explain jsonb, propensity real, shown integer[])
WHERE r.workspace_id = %(workspace_id)s AND r.recall_id = %(recall_id)s
RETURNING h.rank
"""
_HAS_IMPORTED = """
SELECT EXISTS (
    SELECT FROM recalls WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s AND purpose = %(purpose)s
)
"""

# A call that saw the run's latest section replaces it; one that saw an older one writes nothing, and looks again. The
# two statements after it find no row then.
_LOG_SECTION = """
INSERT INTO run_sections AS s (workspace_id, run_id, recall_id, blocks)
VALUES (%(workspace_id)s, %(run_id)s, %(recall_id)s, %(blocks)s::jsonb)
ON CONFLICT (workspace_id, run_id) DO UPDATE
SET recall_id = EXCLUDED.recall_id, blocks = EXCLUDED.blocks, updated_at = EXCLUDED.updated_at
WHERE s.recall_id = %(continues)s
"""
_LOG_WITH_SECTION = f"""
INSERT INTO recalls AS r ({_COLUMNS})
SELECT {_ROW} FROM run_sections s
WHERE s.workspace_id = %(workspace_id)s AND s.run_id = %(run_id)s AND s.recall_id = %(recall_id)s
RETURNING r.recall_id
"""  # noqa: S608 - constants

_LATEST_SECTION = """
SELECT recall_id, blocks FROM run_sections WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s
"""

_LOGGED_RECALL = """
SELECT recall_id, purpose, query, agent, run_id, parameters, mode, degraded, tokens, took_ms, created_at
FROM recalls WHERE workspace_id = %(workspace_id)s AND recall_id = %(recall_id)s
"""

_LOGGED_HITS = f"""
SELECT h.rank, h.memory_id, coalesce({NAME}, '') AS title, h.score, h.explain, h.propensity
FROM recall_hits h LEFT JOIN memories m USING (workspace_id, memory_id)
WHERE h.workspace_id = %(workspace_id)s AND h.recall_id = %(recall_id)s ORDER BY h.rank
"""  # noqa: S608 - constants

_LOGGED_WITHHELD = f"""
SELECT w.rank, w.memory_id, coalesce({NAME}, '') AS title, w.score, w.reason, w.propensity, w.given_to
FROM recalls r CROSS JOIN jsonb_to_recordset(r.withheld)
    AS w(rank smallint, memory_id uuid, score real, reason text, propensity real, given_to uuid)
LEFT JOIN memories m ON m.workspace_id = %(workspace_id)s AND m.memory_id = w.memory_id
WHERE r.workspace_id = %(workspace_id)s AND r.recall_id = %(recall_id)s ORDER BY w.reason, w.rank
"""  # noqa: S608 - constants

# Ids of recalls grow with time, so that their order and a range of them need no other index.
_LIST = """
SELECT recall_id, purpose, query, agent, run_id, mode, degraded, tokens, took_ms, created_at, hits
FROM recalls WHERE workspace_id = %(workspace_id)s{conditions} ORDER BY recall_id DESC LIMIT %(limit)s
"""
_CONDITIONS = {
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
_OUTCOMES: Mapping[Outcome, str] = {"empty": "hits = 0", "degraded": "degraded <> '[]'"}

_DAYS = """
SELECT (created_at AT TIME ZONE 'UTC')::date AS day, count(*)::int AS recalls,
    count(*) FILTER (WHERE hits = 0)::int AS empty, count(*) FILTER (WHERE degraded <> '[]')::int AS degraded,
    percentile_cont(0.95) WITHIN GROUP (ORDER BY took_ms) AS p95_ms
FROM recalls
WHERE workspace_id = %(workspace_id)s AND recall_id >= %(first)s AND purpose <> ALL(%(others)s::text[])
GROUP BY 1
"""

_FORGET_RUNS = """
WITH sections AS (
    DELETE FROM run_sections WHERE workspace_id = %(workspace_id)s AND run_id = ANY(%(run_ids)s::text[])
)
DELETE FROM recalls WHERE workspace_id = %(workspace_id)s AND run_id = ANY(%(run_ids)s::text[])
"""

# Each hit can be used once, however often the run's output or notes are sent. Locks are taken in the order of ids.
_MARK_USED = """
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
_TAKE_UNCOUNTED = """
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
_UNCOUNTED_OF_ALL = """
SELECT workspace_id FROM workspaces w
WHERE workspace_id IN (SELECT r.workspace_id FROM recalls r WHERE NOT r.counted) ORDER BY 1
"""
_FORGET_USER = """
WITH asked AS (
    DELETE FROM recalls WHERE workspace_id = %(workspace_id)s AND user_id = %(user)s RETURNING recall_id
), sections AS (
    DELETE FROM run_sections WHERE workspace_id = %(workspace_id)s AND recall_id IN (SELECT recall_id FROM asked)
)
SELECT count(*) FROM asked
"""


async def _insert(session: Session, record: Values) -> None:
    """Writes a recall with its hits. A crash of the server may lose the latest ones, so no answer waits for a disk."""
    await session.execute_lazily([_LOG, _LOG_HITS], record)


async def insert_if_room(session: Session, record: Values) -> str:
    """Writes a recall with its hits; returns the reason why it is not written, where the disk is full."""
    try:
        await _insert(session, record)
    except psycopg.errors.DiskFull as error:
        return str(error)
    return ""


async def insert_with_section(session: Session, record: Values) -> bool:
    """Writes a recall with its hits and its run's new section.

    Returns False, and writes nothing, if another section of the run was written after the one that this continues.
    """
    placed, *_ = await session.execute_lazily([_LOG_SECTION, _LOG_WITH_SECTION, _LOG_HITS], record)
    return bool(placed)


async def latest_section(session: Session, run_id: str) -> Row | None:
    """Returns the run's latest stable section: its `recall_id` and `blocks`; None if the run has none yet."""
    return await session.row(_LATEST_SECTION, {"run_id": run_id})


async def find(session: Session, recall_id: UUID) -> LoggedRecall | None:
    """Returns a recall with its hits; None if there is none."""
    recall = await session.row(_LOGGED_RECALL, {"recall_id": recall_id})
    if recall is None:
        return None
    hits = await session.rows(_LOGGED_HITS, {"recall_id": recall_id})
    withheld = await session.rows(_LOGGED_WITHHELD, {"recall_id": recall_id})
    weight = (recall.parameters.get("weights") or {}).get("quality")
    return LoggedRecall(
        **{**recall._asdict(), "degraded": _degradations(recall)},
        hits=tuple(LoggedHit(**hit._asdict(), parts=parts_of(hit.score, hit.explain, weight)) for hit in hits),
        withheld=tuple(WithheldMemory(**item._asdict()) for item in withheld),
    )


async def page(session: Session, asked: RecallFilters, *, limit: int, before: UUID | None) -> list[LoggedSummary]:
    """Returns the recalls that meet every condition, the latest first."""
    since, until = (None if moment is None else first_id(moment) for moment in (asked.since, asked.until))
    values = {**asdict(asked), "before": before, "since": since, "until": until, "limit": limit}
    rows = await session.rows(list_statement(asked, before), values)
    return [LoggedSummary(**{**row._asdict(), "degraded": _degradations(row)}) for row in rows]


def list_statement(asked: RecallFilters, before: UUID | None) -> str:
    """Returns the statement that lists the recalls that meet these conditions."""
    given = {**asdict(asked), "before": before}
    conditions = [sql for name, sql in _CONDITIONS.items() if given[name] is not None]
    conditions += [_OUTCOMES[asked.outcome]] if asked.outcome else []
    return _LIST.format(conditions="".join(f" AND {condition}" for condition in conditions))


async def days_since(session: Session, first: date) -> dict[date, RecallDay]:
    """Returns the days from this one on that had recalls; trials and imports do not count."""
    lowest = first_id(datetime.combine(first, datetime.min.time(), UTC))
    rows = await session.rows(_DAYS, {"first": lowest, "others": [TRIAL, IMPORTED]})
    return {row.day: RecallDay(**row._asdict()) for row in rows}


def _degradations(row: Row) -> tuple[Degradation, ...]:
    return tuple(Degradation(**item) for item in row.degraded)


async def mark_used(session: Session, run_id: str, ids: Collection[UUID]) -> set[UUID]:
    """Marks the hits by which a run was given these memories as used; returns the memories of newly marked hits."""
    return set(await session.column(_MARK_USED, {"run_id": run_id, "ids": sorted(ids)})) if ids else set()


async def insert_imported(session: Session, run_id: str, *, task: str, agent: str | None, ids: Sequence[UUID]) -> None:
    """Logs once that an imported run was given these memories, in this order; their scores are unknown."""
    asked = {"run_id": run_id, "purpose": IMPORTED}
    if not ids or await session.value(_HAS_IMPORTED, asked):
        return
    hits = [{"rank": rank, "memory_id": memory_id, "score": 0, "explain": {}} for rank, memory_id in enumerate(ids, 1)]
    unknown = {"parameters": "{}", "mode": "imported", "degraded": "[]", "tokens": None, "took_ms": 0, "withheld": "[]"}
    recall = {**asked, **unknown, "recall_id": new_id(), "query": task, "agent": agent, "hits": as_json(hits)}
    await _insert(session, recall)


async def take_uncounted(session: Session) -> list[Access] | None:
    """Marks the earliest recalls that are not counted yet as counted, at most COUNTED_AT_ONCE.

    Returns the accesses of memories by them; None if no such recall is left. Trials and imports give none.
    """
    rows = await session.rows(_TAKE_UNCOUNTED, {"limit": COUNTED_AT_ONCE, "others": [TRIAL, IMPORTED]})
    return [Access(**row._asdict()) for row in rows if row.memory_id is not None] if rows else None


async def uncounted_of_all(session: Session) -> list[int]:
    """Returns the workspaces with recalls that are not counted yet."""
    return await session.column(_UNCOUNTED_OF_ALL)


async def forget_runs(session: Session, run_ids: Sequence[str]) -> None:
    """Removes the recalls of these runs, with their hits and sections."""
    await session.execute(_FORGET_RUNS, {"run_ids": run_ids})


async def forget_user(session: Session, user: str) -> int:
    """Removes the recalls that were asked for a user, with their hits and sections; returns their number."""
    return int(await session.value(_FORGET_USER, {"user": user}))
