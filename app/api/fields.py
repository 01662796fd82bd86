"""Fields that several inputs and views share."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from app.memories.admission import NAME_LIMIT, TAG_LIMIT, TAGS_LIMIT
from app.retrieval.recall import Degradation

Kind = Literal["observation", "chunk", "message", "cue", "note"]
SourceKind = Literal["report", "session", "run", "other"]
Name = Annotated[str, Meta(max_length=NAME_LIMIT)]
Tag = Annotated[str, Meta(min_length=1, max_length=TAG_LIMIT)]
Tags = Annotated[list[Tag], Meta(max_length=TAGS_LIMIT)]
Quality = Annotated[int, Meta(ge=-3, le=3, description="what ratings replay to")]
Score = Annotated[float, Meta(ge=0, le=10, description="the evaluator's score")]


class DegradedView(Struct, frozen=True):
    """An arm that did not serve in full, and why."""

    arm: str
    reason: str


def degraded_view(degraded: Sequence[Degradation]) -> Sequence[DegradedView]:
    """The view of what did not serve in full."""
    return [DegradedView(arm=item.arm, reason=item.reason) for item in degraded]
