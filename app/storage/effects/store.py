"""The SQL of estimated effects."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from app.foundation.db.session import Session
from app.storage.effects.effect import MemoryEffect, StoredEffect
from app.storage.memories.store import as_json

_KIND = UUID(int=0)
"""Stands for the memory in the effect of a kind."""
# The row serves as a lock, too: of two estimates at once, the second replaces what the first has stored.
_NOTE = """
INSERT INTO effect_estimates AS e (workspace_id, ledger) VALUES (%(workspace_id)s, %(ledger)s)
ON CONFLICT (workspace_id) DO UPDATE SET ledger = EXCLUDED.ledger, estimated_at = EXCLUDED.estimated_at
"""
_LATEST = "SELECT ledger, estimated_at FROM effect_estimates WHERE workspace_id = %(workspace_id)s"
_CLEAR = "DELETE FROM effects WHERE workspace_id = %(workspace_id)s"
_FIELDS = (
    "kind", "estimate", "deviation", "low", "high", "harmful", "basis", "runs_with", "runs_without", "enough",
)  # fmt: skip
_ADD = f"""
INSERT INTO effects (workspace_id, outcome, memory_id, flagged, influence, {", ".join(_FIELDS)})
SELECT %(workspace_id)s, outcome, memory_id, flagged, influence, {", ".join(_FIELDS)}
FROM jsonb_populate_recordset(NULL::effects, %(rows)s::jsonb) RETURNING 1
"""  # noqa: S608 - constants
_OF_MEMORIES = """
SELECT e.memory_id, coalesce(nullif(m.title, ''), left(m.body, 80)) AS title, m.kind, m.quality, m.final_score,
    e.estimate, e.low, e.high, e.harmful, e.basis, e.runs_with, e.runs_without, e.enough, e.flagged,
    e.influence::float8 AS influence
FROM effects e JOIN memories m USING (workspace_id, memory_id)
WHERE e.workspace_id = %(workspace_id)s AND e.outcome = 'final_score' AND m.valid_until IS NULL
    AND (e.flagged OR NOT %(flagged)s::boolean)
"""
_INFLUENCES = """
SELECT memory_id, influence FROM effects
WHERE workspace_id = %(workspace_id)s AND outcome = 'final_score' AND influence <> 0
    AND memory_id = ANY(%(ids)s::uuid[])
"""


class LatestEstimate(NamedTuple):
    """The latest estimate of a workspace."""

    ledger: str
    """The fingerprint of the runs that it used."""
    estimated_at: datetime


async def latest(session: Session) -> LatestEstimate | None:
    """Returns the latest estimate of a workspace; None without any."""
    rows = await session.rows(_LATEST)
    return LatestEstimate(*rows[0]) if rows else None


async def replace(session: Session, ledger: str, effects: Iterable[StoredEffect]) -> None:
    """Makes these the effects of a workspace, estimated from the runs of this fingerprint."""
    rows = [_row(item) for item in effects]
    await session.execute(_NOTE, {"ledger": ledger})
    await session.execute(_CLEAR)
    if rows:
        await session.execute(_ADD, {"rows": as_json(rows)})


def _row(item: StoredEffect) -> dict[str, Any]:
    values = {name: getattr(item.effect, name) for name in _FIELDS}
    memory_id = item.effect.memory_id or _KIND
    own = {"outcome": item.outcome, "flagged": item.flagged, "influence": item.influence}
    return {**values, **own, "memory_id": memory_id}


async def of_memories(session: Session, *, flagged: bool = False) -> list[MemoryEffect]:
    """Returns the estimated effects of live memories on the final score; with `flagged`, of harmful ones alone."""
    return [MemoryEffect(**row._asdict()) for row in await session.rows(_OF_MEMORIES, {"flagged": flagged})]


async def influences_of(session: Session, ids: Sequence[UUID]) -> dict[UUID, float]:
    """Returns the influence of those of these memories whose effect on later runs is known well enough, -1 to 1."""
    return dict(await session.tuples(_INFLUENCES, {"ids": list(ids)}))
