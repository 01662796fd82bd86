"""The SQL of the ledger: runs, and what their recalls showed or withheld."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from app.foundation.db.session import Session
from app.insight.effect.facts import GivenSlot, StoredRun
from app.storage.recalls.recall import TRIAL

_AT = "coalesce(r.started_at, r.created_at)"
_OF_PERIOD = f"""r.workspace_id = %(workspace_id)s AND (r.final_score IS NOT NULL OR r.finished_at IS NOT NULL)
    AND (%(since)s::timestamptz IS NULL OR {_AT} >= %(since)s) AND (%(until)s::timestamptz IS NULL OR {_AT} < %(until)s)
    AND (%(task_type)s = '' OR r.task_type = %(task_type)s)"""
_COUNT = f"SELECT count(*) FROM runs r WHERE {_OF_PERIOD}"  # noqa: S608 - constants
# The moment of a run's change is that of its transaction's begin, which may end after an estimate has read the runs: a
# latest moment would miss it, a sum over all runs does not.
_FINGERPRINT = """
SELECT count(*) || ' ' || sum(hashtextextended(run_id || ' ' || extract(epoch FROM updated_at), 0)::numeric)
FROM runs WHERE workspace_id = %(workspace_id)s AND final_score IS NOT NULL
"""
_RUNS = f"""
SELECT r.run_id, r.task_type, coalesce(r.agent, '') AS agent, {_AT} AS at, r.final_score, r.stages,
    CASE WHEN r.finished_at >= r.started_at
        THEN extract(epoch FROM r.finished_at - r.started_at)::float8 END AS duration,
    nullif(cardinality(r.round_scores), 0)::float8 AS rounds,
    coalesce(nullif(j.version, ''), r.metadata ->> 'version', '') AS version
FROM runs r LEFT JOIN judgements j ON j.workspace_id = %(workspace_id)s AND j.run_id = r.run_id
WHERE {_OF_PERIOD}
ORDER BY at DESC, r.run_id LIMIT %(limit)s
"""  # noqa: S608 - constants
# A retry gets the same draw, so it counts once. If it found other memories, no probability is known.
_SLOTS = """
WITH asked AS MATERIALIZED (
    SELECT r.run_id, r.query, r.recall_id, r.withheld, (
        SELECT (w ->> 'given_to')::uuid FROM jsonb_array_elements(r.withheld) AS w WHERE w ->> 'reason' = 'draw'
    ) AS given_to FROM recalls r
    WHERE r.workspace_id = %(workspace_id)s AND r.run_id = ANY(%(run_ids)s::text[]) AND r.purpose <> %(trial)s
), given AS (
    SELECT a.run_id, a.query, h.memory_id, h.rank, true AS shown, h.propensity,
        coalesce(h.memory_id = a.given_to, false) AS is_next
    FROM asked a JOIN recall_hits h ON h.workspace_id = %(workspace_id)s AND h.recall_id = a.recall_id
    UNION ALL
    SELECT a.run_id, a.query, w.memory_id, w.rank, false, w.propensity, w.reason = 'next'
    FROM asked a CROSS JOIN jsonb_to_recordset(a.withheld)
        AS w(rank smallint, memory_id uuid, reason text, propensity real)
    WHERE w.reason IN ('draw', 'next')
    UNION ALL
    SELECT v.run_id, '', c.memory_id, c.rank, true, NULL, false
    FROM activations v JOIN activation_cues c USING (workspace_id, activation_id)
    WHERE v.workspace_id = %(workspace_id)s AND v.run_id = ANY(%(run_ids)s::text[])
)
SELECT g.run_id, g.query, g.memory_id, m.kind, min(g.rank)::int AS rank, bool_or(g.shown) AS shown,
    CASE WHEN count(g.propensity) = count(*) AND min(g.propensity) = max(g.propensity)
        AND bool_or(g.shown) = bool_and(g.shown) THEN min(g.propensity)::float8 END AS propensity,
    bool_and(g.is_next) AS is_next
FROM given g JOIN memories m ON m.workspace_id = %(workspace_id)s AND m.memory_id = g.memory_id
GROUP BY g.run_id, g.query, g.memory_id, m.kind
"""
_OWNERS = """
SELECT memory_id, user_id FROM memories WHERE workspace_id = %(workspace_id)s AND memory_id = ANY(%(ids)s::uuid[])
"""


class RunSelection(NamedTuple):
    """The runs that are asked for."""

    since: datetime | None = None
    until: datetime | None = None
    task_type: str = ""
    """Empty for all."""

    @property
    def is_all(self) -> bool:
        """True if no run is left out."""
        return not any(self)


async def runs(session: Session, asked: RunSelection, *, limit: int) -> list[StoredRun]:
    """Returns the latest finished runs of a selection, the earliest first."""
    rows = await session.tuples(_RUNS, {**asked._asdict(), "limit": limit})
    return [StoredRun(*row) for row in reversed(rows)]


async def count(session: Session, asked: RunSelection) -> int:
    """Returns the number of finished runs of a selection."""
    return int(await session.value(_COUNT, asked._asdict()))


async def fingerprint(session: Session) -> str:
    """Returns a text that changes with each change of a scored run; empty without any."""
    return await session.value(_FINGERPRINT) or ""


async def slots(session: Session, run_ids: Sequence[str]) -> list[GivenSlot]:
    """Returns what these runs were shown, and what draws withheld from them; trials do not count."""
    rows = await session.tuples(_SLOTS, {"run_ids": list(run_ids), "trial": TRIAL})
    return [GivenSlot(*row) for row in rows]


async def owners(session: Session, ids: Sequence[UUID]) -> Mapping[UUID, str]:
    """Returns the users to whom these memories belong, "" for nobody."""
    return {row.memory_id: row.user_id for row in await session.rows(_OWNERS, {"ids": list(ids)})}
