"""Quality, recency and a re-ranker's scores in the ranking. Pure: numbers in, numbers out."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from app.recall.retrieval.rank.weights import values

_GOOD_SCORE = 7.0
"""An evaluator's score below this counts half. It is the pipeline's own pass mark."""
_UNJUDGED = 0.5
"""Weight of a memory without a score, equal to that of an average score."""
_RATING_STEP = 0.15
"""Share by which one rating changes the rank. At most three ratings count, which change it by 45 %."""
_LEAST_ADJUSTMENT = 0.2
"""Least share of its rank that a memory keeps, regardless of the number of ratings."""


_MOST_OF_AN_INFLUENCE = 0.1
"""Most that an estimated effect adds to a rank, or takes from it: a seventh of what the best relevance gives. It is the
bound of `benchmarks/pipeline.py`, by which influence beats quality alone in each of 50 simulated pipelines."""


_IN_USE = values("quality")


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Weights of relevance, quality and recency."""

    relevance: float = _IN_USE["relevance"]
    quality: float = _IN_USE["quality"]
    half_life_days: float | None = _IN_USE["half_life_days"]
    """Days after which recency is in the middle between 1 and its floor; None if age does not count."""
    recency_floor: float = _IN_USE["recency_floor"]
    """Least factor of an old memory."""


class Rank(NamedTuple):
    """A rank with its components.

    value = (w_rel · relevance + w_qual · qual_weight) · q_adjust · recency + role + influence.
    """

    value: float
    relevance: float
    qual_weight: float
    q_adjust: float
    recency: float
    role: float = 0.0
    """The gain of a memory that serves the asking agent's role (`app.recall.retrieval.rank.roles`)."""
    influence: float = 0.0
    """Its gain or loss by its estimated effect on later runs; answers show it where it is not 0."""


def qual_weight(final_score: float | None) -> float:
    """Returns an evaluator's score, 0 to 10, as a weight from 0 to 1; halved below _GOOD_SCORE."""
    if final_score is None:
        return _UNJUDGED
    share = final_score / 10
    return share if final_score >= _GOOD_SCORE else share / 2


def quality_adjustment(quality: int) -> float:
    """Returns the factor of a memory's ratings, -3 to 3: 1 + 0.15 each, at least 0.2."""
    return max(_LEAST_ADJUSTMENT, 1 + _RATING_STEP * quality)


def recency(age_days: float | None, weights: Weights) -> float:
    """Returns the factor of a memory's age: 1 when new, half way to the floor after the half-life, or if unknown."""
    if weights.half_life_days is None:
        return 1.0
    floor = weights.recency_floor
    age_days = weights.half_life_days if age_days is None else age_days
    return floor + (1 - floor) * math.exp2(-max(0.0, age_days) / weights.half_life_days)


def rank(
    relevance: float,
    *,
    final_score: float | None,
    quality: int,
    age_days: float | None,
    weights: Weights,
    role: float = 0.0,
    influence: float = 0.0,
) -> Rank:
    """Returns the rank of a memory of this relevance (0 to 1), score, ratings, age, and gains by role and effect.

    `influence` is a share of _MOST_OF_AN_INFLUENCE, -1 to 1.
    """
    weight, adjustment, fresh = qual_weight(final_score), quality_adjustment(quality), recency(age_days, weights)
    value = (weights.relevance * relevance + weights.quality * weight) * adjustment * fresh + role
    gain = _MOST_OF_AN_INFLUENCE * influence
    return Rank(value + gain, relevance, weight, adjustment, fresh, role, gain)


MOST_RERANKED = 24
"""Most hits that the re-ranker scores: each takes a run of a large model, and later hits would seldom move to the
front."""
RERANKER_SHARE = 0.5
"""Share of the re-ranker's score in the relevance. Half, because it was not measured (benchmarks/retrieval.md)."""

Components = Mapping[str, float | None]
"""Every component of a hit's score, by name."""


def rerank_by_quality(
    hits: Sequence[Components], scores: Sequence[float], weights: Weights
) -> list[tuple[int, dict[str, float | None]]]:
    """Returns the hits in their new order, each by its earlier place and with its new components.

    `scores` belong to the first hits; a hit without a score counts as the worst scored one. Each score becomes a
    probability, and then a share of the best probability, on the scale of relevance. Ratings, judgement and age count
    as before.
    """
    if not scores:
        return list(enumerate(map(dict, hits)))
    known = [logistic(score) for score in scores]
    best = max(known) or 1.0
    fits = [*(value / best for value in known), *[min(known) / best] * (len(hits) - len(known))]
    raw = [*scores, *[None] * (len(hits) - len(known))]
    again = [_reranked_components(hit, fit, score, weights) for hit, fit, score in zip(hits, fits, raw, strict=True)]
    return sorted(enumerate(again), key=lambda item: -(item[1]["score"] or 0.0))


def _reranked_components(
    parts: Components, fit: float, score: float | None, weights: Weights
) -> dict[str, float | None]:
    before = parts.get("relevance") or 0.0
    relevance = (1 - RERANKER_SHARE) * before + RERANKER_SHARE * fit
    factor = weights.relevance * (parts.get("q_adjust") or 0.0) * (parts.get("recency") or 0.0)
    value = (parts["score"] or 0.0) + factor * (relevance - before)
    return {**parts, "score": value, "relevance": relevance, "before_reranking": before, "reranker": score}


def logistic(score: float) -> float:
    """Returns the logistic function of a score, without overflow."""
    if score >= 0:
        return 1 / (1 + math.exp(-score))
    power = math.exp(max(score, -700.0))
    return power / (1 + power)
