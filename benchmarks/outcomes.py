"""What a list of hits is worth: recall by depth and the reciprocal rank, of a question and of many."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

DEPTHS = (1, 5, 10)
"""The numbers of hits among which an answer is looked for."""


class QuestionOutcome(NamedTuple):
    """The answer to one question."""

    recall: Mapping[int, float]
    """Share of what should be found among the first hits, by their number."""
    reciprocal_rank: float
    """1 by the place of the first right hit; 0 without one."""


def outcome(hits: Sequence[UUID], answers: Sequence[frozenset[UUID]]) -> QuestionOutcome:
    """Returns the outcome of a question from its hits, best first."""
    wanted = frozenset().union(*answers)
    first = next((place for place, memory_id in enumerate(hits, start=1) if memory_id in wanted), None)
    shares = {depth: sum(not answer.isdisjoint(hits[:depth]) for answer in answers) / len(answers) for depth in DEPTHS}
    return QuestionOutcome(recall=shares, reciprocal_rank=1 / first if first else 0.0)


def means(outcomes: Sequence[QuestionOutcome]) -> QuestionOutcome:
    """Returns the means over all questions."""
    count = len(outcomes) or 1
    return QuestionOutcome(
        recall={depth: sum(item.recall[depth] for item in outcomes) / count for depth in DEPTHS},
        reciprocal_rank=sum(item.reciprocal_rank for item in outcomes) / count,
    )
