"""The heat of a memory, and the tier that follows from it. Pure.

heat = ALPHA · visits + BETA · length + GAMMA · recency, with recency = exp(-time since the last visit ÷ fading), as in
MemoryOS (Kang et al. 2025, arXiv 2506.06326). There the weights are 1, a segment of dialogue pages is promoted at 5,
and a store of fixed size evicts; docs/tiers.md says where these values were read. Here a memory takes the place of a
segment, nothing is destroyed, and time evicts: visits fade as recency does (docs/adr/0035).
"""

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

WORKING, SHORT_TERM, LONG_TERM = TIERS = ("working", "short_term", "long_term")
ALPHA, GAMMA = 1.0, 1.0
"""Weights of visits and of recency, MemoryOS' own."""
BETA = 0.25
"""Weight of length. MemoryOS has 1 for each page of a segment; a memory is at most one page, and a whole page must not
outweigh EVICTED, or it would never cool."""
PAGE_TOKENS = 200
"""Tokens of a full page; a question and its answer in LoCoMo have some 60, a chunk of a report up to 400."""
PROMOTED = 2.5
"""Heat from which a long-term memory becomes short-term: one visit gives 2 to 2.25, two within half of `fading` 2.6."""
EVICTED = 0.5
"""Heat below which a short-term memory becomes long-term: a full page that nobody visits cools in 1.4 times `fading`,
one of a few words in 0.7; three visits add 1.4."""
LOOKED_AT_LEAST = 60.0
"""Seconds until a memory that cools is looked at again."""
WORKING_TIME = timedelta(days=1)
"""Time after which a memory leaves the working tier though nobody said that its run is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A memory's place among the tiers, with what decides about it."""

    tier: str
    pinned: bool
    visits: float
    """Number of recalls that gave it, each counted less the longer before `since` it was."""
    tokens: int
    since: datetime
    """The moment of the last recall, or of the memory itself."""
    entered: datetime
    """The moment when it was stored."""
    ended: bool
    """True if the run that wrote it is over."""


def heat(placed: Placed, *, now: datetime, fading: float) -> float:
    """Returns the heat at a moment; `fading` is the time in which visits and recency fall by the factor e, seconds."""
    faded = math.exp(-max(0.0, (now - placed.since).total_seconds()) / fading)
    return (ALPHA * placed.visits + GAMMA) * faded + BETA * _length(placed)


def moved(placed: Placed, *, now: datetime, fading: float) -> tuple[str, datetime | None]:
    """Returns the tier in which the memory belongs, and the moment from which that may change by time alone.

    A tier that was just moved to is kept: the answer for it is the same.
    """
    if placed.pinned:
        return placed.tier, None
    if placed.tier == WORKING and not placed.ended and now < placed.entered + WORKING_TIME:
        return WORKING, placed.entered + WORKING_TIME
    warm = heat(placed, now=now, fading=fading)
    if warm < (PROMOTED if placed.tier == LONG_TERM else EVICTED):
        return LONG_TERM, None
    return SHORT_TERM, now + timedelta(seconds=_lasting(warm, placed, fading=fading))


def _lasting(warm: float, placed: Placed, *, fading: float) -> float:
    """Returns the seconds until the heat has fallen to EVICTED."""
    still = BETA * _length(placed)
    return max(LOOKED_AT_LEAST, fading * math.log((warm - still) / (EVICTED - still)))


def _length(placed: Placed) -> float:
    return min(1.0, placed.tokens / PAGE_TOKENS)
