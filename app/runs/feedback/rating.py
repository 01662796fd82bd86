"""One human judgement, and what the log of them replays to."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

LEAST_QUALITY, MOST_QUALITY = -3, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """An entry of the feedback log."""

    feedback_id: UUID
    memory_id: UUID
    rating: int
    """1 or -1."""
    comment: str
    run_id: str | None
    created_at: datetime
    undone_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rated:
    """A rating as it was taken."""

    rating: Rating
    quality: int
    """The memory's, after it."""


def replayed(ratings: Sequence[int]) -> int:
    """The quality that ratings give in their order, clamped to [-3, 3] at each step."""
    quality = 0
    for rating in ratings:
        quality = max(LEAST_QUALITY, min(MOST_QUALITY, quality + rating))
    return quality
