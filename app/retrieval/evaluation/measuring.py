"""Figures of an evaluation: recall, reciprocal rank, junk, and how sure a difference is. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

DEPTHS = (1, 5, 10)
"""The numbers of hits among which an answer is looked for."""
JUDGED = 5
"""The depth that counts in a comparison, with the reciprocal rank."""
RESAMPLES, SEED = 2_000, 7
SURE = 0.95
"""Share of the resamples in which a difference must be a gain."""
LEAST = 0.005
"""Least gain of the score that counts: half a point, below which no idea was kept in the ranking either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The answer to one question."""

    recall: Mapping[int, float]
    """Share of what should be found among the first hits, by their number."""
    reciprocal_rank: float
    """1 by the place of the first right hit; 0 without one."""

    @property
    def score(self) -> float:
        """The mean of both, by which two rankings are compared."""
        return (self.recall[JUDGED] + self.reciprocal_rank) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The means over all questions."""

    recall: Mapping[int, float]
    mrr: float
    junk: float | None
    """Share of the questions about nothing that got a hit; None if none was asked."""
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """The difference of two rankings over the same questions."""

    mean: float
    """The mean difference of the score."""
    certainty: float
    """Share of resamples of the questions (a paired bootstrap) in which the second ranking is better."""

    @property
    def is_sure(self) -> bool:
        """True if it is better, beyond the chance of these questions."""
        return self.mean >= LEAST and self.certainty >= SURE


def outcome(hits: Sequence[UUID], answers: Sequence[frozenset[UUID]]) -> Outcome:
    """Returns the outcome of a question from its hits, best first."""
    wanted = frozenset().union(*answers)
    first = next((place for place, memory_id in enumerate(hits, start=1) if memory_id in wanted), None)
    shares = {depth: sum(not answer.isdisjoint(hits[:depth]) for answer in answers) / len(answers) for depth in DEPTHS}
    return Outcome(recall=shares, reciprocal_rank=1 / first if first else 0.0)


def figures(outcomes: Sequence[Outcome], junk: Sequence[bool]) -> Figures:
    """Returns the means."""
    return Figures(
        recall={depth: _mean([item.recall[depth] for item in outcomes]) for depth in DEPTHS},
        mrr=_mean([item.reciprocal_rank for item in outcomes]),
        junk=_mean(junk) if junk else None,
        score=_mean([item.score for item in outcomes]),
    )


def gain(before: Sequence[Outcome], after: Sequence[Outcome]) -> Gain:
    """Compares two rankings question by question."""
    differences = np.array([new.score - old.score for old, new in zip(before, after, strict=True)])
    drawn = np.random.default_rng(SEED).integers(0, len(differences), (RESAMPLES, len(differences)))
    return Gain(mean=float(differences.mean()), certainty=float((differences[drawn].mean(axis=1) > 0).mean()))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
