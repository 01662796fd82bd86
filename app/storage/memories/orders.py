"""The orders of lists of memories, in parts that an index has sorted. Pure."""

from typing import Any, NamedTuple
from uuid import UUID

# Row-level security keeps COALESCE, which it does not know as safe, from every index; CASE is safe.
MOMENT = "CASE WHEN m.occurred_at IS NULL THEN m.created_at ELSE m.occurred_at END"
RATED_UP, RATED_DOWN = "m.quality > 0", "m.quality < 0"
"""The conditions that the index of rated memories knows."""


class Part(NamedTuple):
    """Memories that stand together in an order, and that an index has in this order."""

    key: str
    """The expression by which they are sorted."""
    kind: str
    """Its type."""
    condition: str = ""
    same: float | None = None
    """The value that all of them have; they are sorted by their ids alone."""

    def sorted_by(self, direction: str) -> str:
        """Returns the columns by which they are sorted, each with the direction."""
        keys = ["m.memory_id"] if self.same is not None else [self.key, "m.memory_id"]
        return ", ".join(f"{key} {direction}" for key in keys)

    def following(self, direction: str, after: tuple[Any, UUID] | None) -> str | None:
        """Returns the condition of those that follow a place; "" if all of them do, None if none does."""
        if after is None:
            return ""
        sign = ">" if direction == "asc" else "<"
        if self.same is None:
            return f"({self.key}, m.memory_id) {sign} (%(after)s::{self.kind}, %(after_id)s)"
        if self.same == after[0]:
            return f"m.memory_id {sign} %(after_id)s"
        return "" if (self.same > after[0]) == (direction == "asc") else None


CREATED, OCCURRED = Part("m.created_at", "timestamptz"), Part(MOMENT, "timestamptz")
_SCORED = Part("m.final_score", "real", "m.final_score IS NOT NULL")
UP, DOWN = (Part("m.quality", "float8::smallint", condition) for condition in (RATED_UP, RATED_DOWN))
_UNRATED = Part("m.quality", "smallint", "m.quality = 0", same=0)
UNJUDGED_BELOW, UNJUDGED_ABOVE = (
    Part(f"{score}::real", "real", "m.final_score IS NULL", same=score) for score in (-1, 11)
)
"""Unjudged memories come last in both directions."""
ORDERS = {
    ("created", "desc"): (CREATED,),
    ("created", "asc"): (CREATED,),
    ("occurred", "desc"): (OCCURRED,),
    ("occurred", "asc"): (OCCURRED,),
    ("score", "desc"): (_SCORED, UNJUDGED_BELOW),
    ("score", "asc"): (_SCORED, UNJUDGED_ABOVE),
    ("quality", "desc"): (UP, _UNRATED, DOWN),
    ("quality", "asc"): (DOWN, _UNRATED, UP),
}
"""The parts of each order, one after the other."""
