"""What a re-ranker's scores change of a ranking. Pure."""

import math
from collections.abc import Sequence
from dataclasses import replace

from app.retrieval.ranking import Weights
from app.retrieval.recall import Hit

MOST_RERANKED = 24
"""Hits that are read again: each is a run of a large model, and hardly any of those behind would come to the front."""
SHARE = 0.5
"""Of the relevance, what the re-ranker says of it. Half, because it was not measured (docs/retrieval.md)."""


def reranked(hits: Sequence[Hit], scores: Sequence[float], weights: Weights) -> list[Hit]:
    """The hits in their new order. `scores` are of the first of them; what was not scored counts as the worst that was.

    Each score becomes a probability, and that a share of the best one's, as relevance is. Ratings, judgement and age
    count as before.
    """
    if not scores:
        return list(hits)
    known = [_probability(score) for score in scores]
    best = max(known) or 1.0
    fits = [*(value / best for value in known), *[min(known) / best] * (len(hits) - len(known))]
    raw = [*scores, *[None] * (len(hits) - len(known))]
    again = [_again(hit, fit, score, weights) for hit, fit, score in zip(hits, fits, raw, strict=True)]
    return sorted(again, key=lambda hit: -hit.score)


def _again(hit: Hit, fit: float, score: float | None, weights: Weights) -> Hit:
    parts = hit.explain
    before = parts["relevance"] or 0.0
    relevance = (1 - SHARE) * before + SHARE * fit
    factor = weights.relevance * (parts["q_adjust"] or 0.0) * (parts["recency"] or 0.0)
    value = hit.score + factor * (relevance - before)
    added = {"score": value, "relevance": relevance, "before_reranking": before, "reranker": score}
    return replace(hit, score=value, explain={**parts, **added})


def _probability(score: float) -> float:
    """The logistic function, without overflow."""
    if score >= 0:
        return 1 / (1 + math.exp(-score))
    power = math.exp(max(score, -700.0))
    return power / (1 + power)
