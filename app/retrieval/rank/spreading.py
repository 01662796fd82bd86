"""Evidence passed on along links. Pure: lists in, lists out.

The best of each arm are givers. A memory that is linked with a giver gains a share of the giver's own evidence: as
much as the relation is worth, less the more the giver's links of that relation weigh. Of several the strongest counts,
and what is gained is not passed on: one link says why a memory came.
"""

from collections.abc import Mapping, Sequence
from math import sqrt
from types import MappingProxyType
from typing import Any, NamedTuple

from app.links.link import DERIVED_FROM, MENTIONS, SAME_ENTITY, SUPERSEDES

SPREADING: Mapping[str, float] = MappingProxyType({MENTIONS: 0.7, DERIVED_FROM: 0.7, SUPERSEDES: 0.7, SAME_ENTITY: 0.2})
"""Share of a giver's evidence that one link passes on (docs/retrieval.md has what other shares find). What callers set
counts as much as a mention; `similar` is missing, because it costs half a point."""


class Tie(NamedTuple):
    """A link between a memory and a giver, seen from the memory."""

    giver: int
    """The giver's number."""
    relation: str
    direction: str
    """`out` where the memory mentions, is derived from … the giver; else `in`."""
    weight: float
    """The link's, above 0, at most 1."""
    degree: float
    """What the giver's links of this relation weigh together, at least 1: weak ones take little from the others."""


class Lift(NamedTuple):
    """What a memory gained, and by which link."""

    value: float
    tie: Tie | None


NOTHING = Lift(0.0, None)


def spread(
    evidence: Sequence[float],
    givers: Sequence[int | None],
    ties: Sequence[Sequence[Tie]],
    shares: Mapping[str, float] = SPREADING,
) -> list[Lift]:
    """What each memory gains by its links, in the order of `evidence`.

    Never negative, and never more than the greatest share of the greatest evidence: no memory loses by links, and a
    hub with thousands of them cannot flood an answer. A tie with an unknown giver or relation passes nothing on.
    """
    if not any(ties):
        return [NOTHING] * len(ties)
    given = {giver: max(0.0, value) for giver, value in zip(givers, evidence, strict=True) if giver is not None}
    return [_strongest(its, given, shares) if its else NOTHING for its in ties]


def _strongest(ties: Sequence[Tie], given: Mapping[int, float], shares: Mapping[str, float]) -> Lift:
    best = NOTHING
    for tie in ties:
        value = shares.get(tie.relation, 0.0) * tie.weight * given.get(tie.giver, 0.0) / sqrt(tie.degree)
        if value > best.value:
            best = Lift(value, tie)
    return best


def ties_of(rows: Sequence[Sequence[Any]] | None) -> Sequence[Tie]:
    """Ties as the pool's statement gives them."""
    return [Tie._make(row) for row in rows] if rows else ()
