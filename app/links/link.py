"""Links between memories, and their relations."""

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

NEXT, MENTIONS, SAME_ENTITY, SIMILAR = "next", "mentions", "same_entity", "similar"
DERIVED_FROM, SUPERSEDES = "derived_from", "supersedes"
GIVEN = (DERIVED_FROM, SUPERSEDES)
"""The relations that callers set; others are found, and a caller's word would not outlive the next finding."""
FOUND = (MENTIONS, SAME_ENTITY, SIMILAR)
"""The relations that are found, in texts and by vectors."""
RELATIONS = (NEXT, *GIVEN, *FOUND)
"""All relations, in the order in which they are shown."""


class Link(NamedTuple):
    """A stored link: `from_id` mentions, is derived from, supersedes … `to_id`."""

    from_id: UUID
    to_id: UUID
    relation: str
    weight: float = 1.0
    """The link's strength, above 0 and at most 1."""


LEAST_WEIGHT = 0.001
"""The smallest weight of a link: with less it changes no score visibly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """A memory at the other end of a link, as the one that was asked for sees it."""

    relation: str
    direction: str
    """`out` where the memory asked for is the one that mentions, supersedes … or comes before; else `in`."""
    memory_id: UUID
    title: str
    kind: str
    weight: float
