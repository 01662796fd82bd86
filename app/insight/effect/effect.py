"""The effects of memories on later runs: the values, and the rules that follow from an estimate. Pure.

`model` computes the estimates.
"""

import math
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from msgspec import Struct

from app.storage.effects.effect import Effect

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


class Slot(Struct, frozen=True, kw_only=True):
    """A memory at one rank of a recall, shown to the run or withheld from it."""

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


def flag_harmful(effects: Sequence[Effect], false_discoveries: float = _FALSE_DISCOVERIES) -> list[Effect]:
    """Returns the harmful memories, surest first; in expectation at most this share of them does no harm.

    Observational effects and those with too little data are not flagged. The rule takes the memories in the order of
    their probability while the mean probability of being wrong stays below the share: the Bayesian false discovery rate
    (Newton, Noueiry, Sarkar & Ahlquist 2004, Biostatistics 5; Müller, Parmigiani & Rice 2006).
    """
    candidates = [item for item in effects if item.memory_id and item.enough and item.basis != "observational"]
    candidates.sort(key=lambda item: item.harmful, reverse=True)
    wrong = 0.0
    for count, item in enumerate(candidates):
        wrong += 1 - item.harmful
        if wrong > false_discoveries * (count + 1):
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
