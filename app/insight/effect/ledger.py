"""The ledger of runs and of what their recalls showed or withheld: its SQL, its facts, and the values of effects.

`model` computes the estimates; the rules that follow from one are here.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from math import prod
from typing import Any, NamedTuple
from uuid import UUID

from msgspec import Struct

from app.foundation.db.session import Session
from app.intake.cases.store import JudgedRun
from app.intake.runs.run import sum_of_stages
from app.storage.effects import Effect
from app.storage.recalls.store import TRIAL

LEAST_RUNS = 3
"""Runs with a memory, and runs without it, below which there is too little data."""
LEAST_SCORED = 20
"""Runs in all below which there is too little data for any conclusion: the regression has about ten terms."""
OVERLAP = 0.001
"""A propensity nearer to 0 or 1 is no random draw: its weight would be that of a thousand runs."""
_FALSE_DISCOVERIES = 0.05
"""Share of the memories flagged as harmful that may be harmless, in expectation."""
_INFLUENCE_SCALE = 1.0
"""Points of the final score (0 to 10) at which the influence reaches tanh(1) = 0.76 of its bound."""
_CAUTION = 1.0
"""Standard deviations by which the influence takes an effect to be smaller than its estimate."""


class ScoredRun(Struct, frozen=True, kw_only=True):
    """A finished run: what is known before its recalls, and its outcomes."""

    run_id: str
    task_type: str
    agent: str
    at: datetime
    final_score: float | None
    cost: float | None = None
    tokens: float | None = None
    duration: float | None = None
    rounds: float | None = None
    version: str = ""
    """The version of its case, or of the pipeline where the run names it in its metadata."""


class Slot(NamedTuple):
    """A memory at one rank of a recall, shown to the run or withheld from it by a draw."""

    run_id: str
    memory_id: UUID
    kind: str
    rank: int
    shown: bool
    propensity: float | None
    """The logged probability with which it was to be shown; None where none was logged."""
    is_next: bool = False
    """True of the next candidate for the slot of a memory that a draw withheld; its probability is that after the
    draw."""
    query: str = ""

    @property
    def is_evidence(self) -> bool:
        """True if it was shown, or a draw withheld it with a known probability."""
        return self.shown or self.propensity is not None


def flag_harmful(effects: Sequence[Effect]) -> list[Effect]:
    """Returns the harmful memories, surest first; in expectation at most _FALSE_DISCOVERIES of them do no harm.

    Observational effects and those with too little data are not flagged. The rule takes the memories in the order of
    their probability while the mean probability of being wrong stays below the share: the Bayesian false discovery rate
    (Newton, Noueiry, Sarkar & Ahlquist 2004, Biostatistics 5; Müller, Parmigiani & Rice 2006).
    """
    candidates = [item for item in effects if item.enough and item.basis != "observational"]
    candidates.sort(key=lambda item: item.harmful, reverse=True)
    wrong = 0.0
    for count, item in enumerate(candidates):
        wrong += 1 - item.harmful
        if wrong > _FALSE_DISCOVERIES * (count + 1):
            return candidates[:count]
    return candidates


def influence(effect: Effect, bound: float) -> float:
    """Returns what an effect on the final score adds to a memory's rank: between -bound and bound.

    The effect counts as _CAUTION standard deviations nearer to 0 than its estimate. An effect that is observational,
    or has too little data, has none.
    """
    if not effect.enough or effect.basis == "observational":
        return 0.0
    sure = max(0.0, abs(effect.estimate) - _CAUTION * effect.deviation)
    return math.copysign(bound * math.tanh(sure / _INFLUENCE_SCALE), effect.estimate)


class Exposure(Struct, frozen=True, kw_only=True):
    """The memories that the recalls of one run showed, and how probable that was."""

    shown: int = 0
    """Memories that were shown."""
    withheld: bool = False
    """True if a draw withheld a memory from the run, and left its slot empty or gave it to the next candidate."""
    whole: float | None = None
    """The probability that no draw withheld a memory; None where nothing was drawn."""
    some: float | None = None
    """The probability that the run was shown a memory at all; None where no draw decided on it."""


_NO_EXPOSURE = Exposure()
_NOT_JUDGED = JudgedRun(issues=None, repeats=None)


class RunFacts(Struct, frozen=True, kw_only=True):
    """A run with all that a report compares."""

    run: ScoredRun
    issues: int | None = None
    """Issues that its judge named; None if no judgement of it lists any."""
    repeats: int | None = None
    """Issues among them that were named of an earlier version of the case already; None if there is no earlier one."""
    exposure: Exposure = _NO_EXPOSURE


def facts_of(runs: Sequence[ScoredRun], slots: Iterable[Slot], judged: Mapping[str, JudgedRun]) -> Sequence[RunFacts]:
    """Returns the facts of these runs; `judged` has the numbers of issues of those whose judgement lists issues."""
    given = exposures(slots)
    return [
        RunFacts(run=run, exposure=given.get(run.run_id, _NO_EXPOSURE), **judged.get(run.run_id, _NOT_JUDGED)._asdict())
        for run in runs
    ]


def exposures(slots: Iterable[Slot]) -> Mapping[str, Exposure]:
    """Returns the exposure of each run that has slots."""
    ordered = sorted(slots, key=lambda item: (item.run_id, item.query))
    return {run_id: _exposure(list(its)) for run_id, its in groupby(ordered, key=lambda item: item.run_id)}


def _exposure(slots: Sequence[Slot]) -> Exposure:
    shown = len({item.memory_id for item in slots if item.shown})
    own = [item for item in slots if not item.is_next]
    withheld = any(not item.shown for item in own)
    recalls = [list(its) for _, its in groupby(own, key=lambda item: item.query)]
    drawn = [recall for recall in recalls if any(OVERLAP < (item.propensity or 0) < 1 - OVERLAP for item in recall)]
    if not drawn:
        return Exposure(shown=shown, withheld=withheld)
    # A draw withholds one memory of a recall at most, so the probabilities of its memories add up.
    less = [min(1.0, sum(1 - item.propensity for item in recall if item.propensity is not None)) for recall in drawn]
    # The slot of a recall's only memory is never given to another one.
    is_all = len(drawn) == len(recalls) and all(len(recall) == 1 for recall in drawn)
    return Exposure(
        shown=shown,
        withheld=withheld,
        whole=prod(1 - one for one in less),
        some=1 - prod(less) if is_all else None,
    )


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
SELECT g.run_id, g.memory_id, m.kind, min(g.rank)::int AS rank, bool_or(g.shown) AS shown,
    CASE WHEN count(g.propensity) = count(*) AND min(g.propensity) = max(g.propensity)
        AND bool_or(g.shown) = bool_and(g.shown) THEN min(g.propensity)::float8 END AS propensity,
    bool_and(g.is_next) AS is_next, g.query
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


async def runs(session: Session, asked: RunSelection, *, limit: int) -> list[ScoredRun]:
    """Returns the latest finished runs of a selection, the earliest first."""
    rows = await session.rows(_RUNS, {**asked._asdict(), "limit": limit})
    return [_run_of(row._asdict()) for row in reversed(rows)]


def _run_of(values: dict[str, Any]) -> ScoredRun:
    used = sum_of_stages(values.pop("stages"))
    return ScoredRun(**values, cost=used.cost, tokens=used.tokens)


async def count(session: Session, asked: RunSelection) -> int:
    """Returns the number of finished runs of a selection."""
    return int(await session.value(_COUNT, asked._asdict()))


async def fingerprint(session: Session) -> str:
    """Returns a text that changes with each change of a scored run; empty without any."""
    return await session.value(_FINGERPRINT) or ""


async def slots(session: Session, run_ids: Sequence[str]) -> list[Slot]:
    """Returns what these runs were shown, and what draws withheld from them; trials do not count."""
    rows = await session.tuples(_SLOTS, {"run_ids": list(run_ids), "trial": TRIAL})
    return [Slot(*row) for row in rows]


async def owners(session: Session, ids: Sequence[UUID]) -> Mapping[UUID, str]:
    """Returns the users to whom these memories belong, "" for nobody."""
    return {row.memory_id: row.user_id for row in await session.rows(_OWNERS, {"ids": list(ids)})}
