"""Stores the computed effects of memories on judged runs."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

from msgspec import Struct
from msgspec.structs import force_setattr

from app.foundation.db.session import Session
from app.foundation.text.words import count_noun
from app.storage.memories.store import as_json
from app.storage.tenants import store as tenants

Basis = Literal["experimental", "observational"]


class Effect(Struct, frozen=True, kw_only=True):
    """The effect on a run's final score of showing a memory instead of leaving it out."""

    memory_id: UUID
    kind: str
    estimate: float
    """In points of the score."""
    deviation: float
    """The standard error of the estimate."""
    low: float
    high: float
    """The ends of the 95 % interval."""
    harmful: float
    """The probability that it does harm of at least the tolerated size."""
    basis: Basis
    """Experimental: a draw withheld it from runs. Observational: none did; other causes may stand behind it."""
    runs_with: int
    runs_without: int
    """The runs from which a draw withheld it; of an observational effect, all runs without it."""
    enough: bool
    """False: too little data for a conclusion, whatever the numbers."""


class StoredEffect(NamedTuple):
    """An effect with what follows from it."""

    effect: Effect
    flagged: bool
    """True if it is among those that are called harmful."""
    influence: float
    """Its gain in a rank, -1 to 1."""


class MemoryEffect(Struct, frozen=True, kw_only=True, rename={"memory_id": "id"}):
    """A memory with its estimated effect on the final score of later runs."""

    memory_id: UUID
    title: str
    kind: str
    quality: int
    final_score: float | None
    estimate: float
    low: float
    high: float
    harmful: float
    """The probability that it does harm of a size that matters."""
    basis: Basis
    runs_with: int
    runs_without: int
    enough: bool
    flagged: bool
    """True if it is among those that are called harmful."""
    influence: float
    """Its gain in a rank, as a share of the most; 0 where nothing is known well enough."""
    why: str = ""
    """The evidence of the estimate, in a sentence."""

    def __post_init__(self) -> None:
        """Says why."""
        force_setattr(self, "why", self._evidence())

    def _evidence(self) -> str:
        shown = f"{count_noun(self.runs_with, 'run')} {'was' if self.runs_with == 1 else 'were'} shown it"
        if not self.enough:
            return f"{shown}: too little data for a conclusion."
        sure = f"{self.estimate:+.1f} points ({self.low:+.1f} to {self.high:+.1f})"
        if self.basis == "experimental":
            return (
                f"{shown} and from {self.runs_without:,} a draw withheld it: {sure} of the final score by showing it."
            )
        without = f"{self.runs_without:,} {'was' if self.runs_without == 1 else 'were'} not"
        return f"{shown} and {without}: {sure}; nothing was drawn, so another cause may stand behind it."


_LATEST = """
SELECT effects_ledger, effects_at FROM workspaces WHERE workspace_id = %(workspace_id)s AND effects_ledger IS NOT NULL
"""
_CLEAR = "DELETE FROM effects WHERE workspace_id = %(workspace_id)s"
_FIELDS = (
    "kind", "estimate", "deviation", "low", "high", "harmful", "basis", "runs_with", "runs_without", "enough",
)  # fmt: skip
_ADD = f"""
INSERT INTO effects (workspace_id, memory_id, flagged, influence, {", ".join(_FIELDS)})
SELECT %(workspace_id)s, memory_id, flagged, influence, {", ".join(_FIELDS)}
FROM jsonb_populate_recordset(NULL::effects, %(rows)s::jsonb) RETURNING 1
"""  # noqa: S608 - constants
_OF_MEMORIES = """
SELECT e.memory_id, coalesce(nullif(m.title, ''), left(m.body, 80)) AS title, m.kind, m.quality, m.final_score,
    e.estimate, e.low, e.high, e.harmful, e.basis, e.runs_with, e.runs_without, e.enough, e.flagged,
    e.influence::float8 AS influence
FROM effects e JOIN memories m USING (workspace_id, memory_id)
WHERE e.workspace_id = %(workspace_id)s AND m.valid_until IS NULL
    AND (e.flagged OR NOT %(flagged)s::boolean)
"""
_INFLUENCES = """
SELECT memory_id, influence FROM effects
WHERE workspace_id = %(workspace_id)s AND influence <> 0
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
    # The row serves as a lock, too: of two estimates at once, the second replaces what the first has stored.
    await tenants.note_estimate(session, ledger)
    await session.execute(_CLEAR)
    if rows:
        await session.execute(_ADD, {"rows": as_json(rows)})


def _row(item: StoredEffect) -> dict[str, Any]:
    values = {name: getattr(item.effect, name) for name in ("memory_id", *_FIELDS)}
    return {**values, "flagged": item.flagged, "influence": item.influence}


async def of_memories(session: Session, *, flagged: bool = False) -> list[MemoryEffect]:
    """Returns the estimated effects of live memories on the final score; with `flagged`, of harmful ones alone."""
    return [MemoryEffect(**row._asdict()) for row in await session.rows(_OF_MEMORIES, {"flagged": flagged})]


async def influences_of(session: Session, ids: Sequence[UUID]) -> dict[UUID, float]:
    """Returns the influence of those of these memories whose effect on later runs is known well enough, -1 to 1."""
    return dict(await session.tuples(_INFLUENCES, {"ids": ids}))
