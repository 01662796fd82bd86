"""Quality and recency in the ranking. Pure: numbers in, numbers out."""

import math
from dataclasses import dataclass
from typing import NamedTuple

GOOD_SCORE = 7.0
"""An evaluator's score below it counts half: the pipeline's own pass mark."""
UNJUDGED = 0.5
"""What a memory without a score weighs: as much as a middling judged one."""
RATING_STEP = 0.15
"""What one rating moves the rank by; three, the most that count, move it by 45 %."""
LEAST_ADJUSTMENT = 0.2
"""However often it is rated down, a memory keeps this share of its rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """How much each thing counts."""

    relevance: float = 0.7
    quality: float = 0.3
    half_life_days: float | None = 365.0
    """Days after which recency is half way to its floor; None: age does not count."""
    recency_floor: float = 0.8
    """What age alone can take from a memory is the rest; mild, because an old lesson holds."""


class Rank(NamedTuple):
    """A rank and what it is made of: value = (w_rel · relevance + w_qual · qual_weight) · q_adjust · recency."""

    value: float
    relevance: float
    qual_weight: float
    q_adjust: float
    recency: float


def qual_weight(final_score: float | None) -> float:
    """An evaluator's score, 0 to 10, as a weight from 0 to 1; halved below GOOD_SCORE."""
    if final_score is None:
        return UNJUDGED
    share = final_score / 10
    return share if final_score >= GOOD_SCORE else share / 2


def quality_adjustment(quality: int) -> float:
    """The factor of a memory's ratings, -3 to 3: 1 + 0.15 each, at least 0.2."""
    return max(LEAST_ADJUSTMENT, 1 + RATING_STEP * quality)


def recency(age_days: float, weights: Weights) -> float:
    """The factor of a memory's age: 1 when new, half way to the floor after the half-life."""
    if weights.half_life_days is None:
        return 1.0
    floor = weights.recency_floor
    return floor + (1 - floor) * math.exp2(-max(0.0, age_days) / weights.half_life_days)


def rank(relevance: float, *, final_score: float | None, quality: int, age_days: float, weights: Weights) -> Rank:
    """The rank of a memory of this relevance (0 to 1), score, ratings and age."""
    weight, adjustment, fresh = qual_weight(final_score), quality_adjustment(quality), recency(age_days, weights)
    value = (weights.relevance * relevance + weights.quality * weight) * adjustment * fresh
    return Rank(value, relevance, weight, adjustment, fresh)
