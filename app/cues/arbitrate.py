"""Decides which of the matched cues are told under a budget. Pure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from types import MappingProxyType
from uuid import UUID

import numpy as np

from app.cues import say
from app.cues.cue import (
    CORRECTION,
    DECISION,
    DISCOVERY,
    NEGATIVE_RESULT,
    PERSON,
    PRECEDENT,
    PREFERENCE,
    PROCEDURE,
    STARTER,
    TOGETHER,
    Cue,
)
from app.cues.known import Halves, learnt
from app.cues.match import Match
from app.models.protocols import TokenCounter, Vector

CONSEQUENCE = 0.3
"""Added for a consequence of 1 over one of 0, as log-odds. Up to 0.3 the hits stay as they are; at 0.6 they fall by
0.01."""
AGE, HALF_LIFE_DAYS = 0.3, 365.0
"""Most that age takes away, and the days after which half of it is gone: a long tail, because a lesson stays true."""
TWO_DATES = 0.2
"""Added for a cue seen on two dates."""
OUTCOMES, DOUBTED = 0.5, 4
"""Added if the cue was always heeded, taken if always ignored; and the outcomes that count as much as the prior."""
RATED = 0.15
"""Added for each point of the ratings."""
JUDGED = 3.0
"""Added if a language model says that a severe cue applies to the plan, taken if it says that it does not. It moves a
cue past most others and removes none: a missed one costs the mistake."""
LEAST, BREADTH = 0.5, 0.5
"""Relevance from which a cue fires, and by how much it is lower for a severe cue of a rare act. Low, because a wrong
cue costs tokens and a missed one the mistake: nine in ten right cues lie above 0.2, half of all others above -0.1."""
SLOTS: Mapping[str, int] = MappingProxyType(
    {
        CORRECTION: 2,
        NEGATIVE_RESULT: 1,
        DECISION: 1,
        PREFERENCE: 1,
        PROCEDURE: 1,
        DISCOVERY: 1,
        PRECEDENT: 1,
    }
)
"""Places that each kind has for its own, in the order in which they are filled."""
RESERVED_AMONG = 20
"""Best cues of which a kind may take its places: among 20 the hits rise from 0.644 to 0.650, among 60 they fall."""
ALIKE = 0.55
"""Cosine of trigger and lesson from which two cues say the same, so that one of them is told. At 0.5 and 0.6 the hits
of three sets of plans are 0.01 to 0.03 lower."""
DETAILED = 2
"""Best cues that are told with their trigger, if they are severe with reason and checkpoint. With 3 the hits of the
labelled plans fall from 0.613 to 0.594 and with 20 further, because the tokens are missing for others."""
CONSIDERED = 60
"""Best cues that are read."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Fired:
    """A cue that a plan triggers, with every component of its score."""

    cue: Cue
    rank: float
    """The sum by which cues are told, on the scale of a log-odds."""
    score: float
    """0 to 1: how likely the cue applies."""
    explain: Mapping[str, float]
    vectors: Halves | None = field(repr=False)

    @cached_property
    def meaning(self) -> Vector | None:
        """The vector of its trigger and lesson together."""
        return None if self.vectors is None else self.vectors[TOGETHER].astype(np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A cue as the section tells it."""

    fired: Fired
    line: str
    tokens: int
    contradiction: say.Contradiction | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """A cue that matched and is not told."""

    fired: Fired
    reason: str
    """`trust`, `suspect`, `alike` or `budget`."""


def ranked(matches: Iterable[Match], cues: Mapping[UUID, Cue], *, now: datetime) -> list[Fired]:
    """Returns the matched cues that fire, best first."""
    found = [_fired(match, cues[match.cue_id], now) for match in matches if match.cue_id in cues]
    return sorted((item for item in found if item is not None), key=lambda item: (-item.rank, item.cue.cue_id))


def _fired(match: Match, cue: Cue, now: datetime) -> Fired | None:
    if match.relevance < LEAST - BREADTH * cue.consequence * match.rarity:
        return None
    age = max(timedelta(), now - cue.valid_from) / timedelta(days=1)
    settled = cue.heeded + cue.ignored
    parts = {
        **match.parts,
        "consequence": CONSEQUENCE * (cue.consequence - 0.5),
        "recency": -AGE * (1 - math.exp2(-age / HALF_LIFE_DAYS)),
        "two_dates": TWO_DATES if len(cue.seen_on) > 1 else 0.0,
        "outcomes": OUTCOMES * (cue.heeded - cue.ignored) / (settled + DOUBTED),
        "rated": RATED * cue.quality,
    }
    rank = sum(parts.values())
    score = 1 / (1 + math.exp(learnt().middle - rank - match.same_words))
    explain = {name: round(value, 3) for name, value in (parts | {"same_words": match.same_words}).items()}
    return Fired(cue=cue, rank=rank, score=round(score, 6), explain=explain, vectors=match.vectors)


def judged(fired: Sequence[Fired], verdicts: Mapping[UUID, bool]) -> list[Fired]:
    """Returns fired cues, best first, after a language model has judged some: true if it applies."""
    found = [
        item if item.cue.cue_id not in verdicts else _moved(item, JUDGED if verdicts[item.cue.cue_id] else -JUDGED)
        for item in fired
    ]
    return sorted(found, key=lambda item: (-item.rank, item.cue.cue_id))


def _moved(item: Fired, added: float) -> Fired:
    odds = item.score / max(1e-6, 1 - item.score) * math.exp(added)
    score = round(odds / (1 + odds), 6)
    return replace(item, rank=item.rank + added, score=score, explain={**item.explain, "judged": added})


def chosen(
    fired: Sequence[Fired], *, plan: str, budget: int, counter: TokenCounter, slots: Mapping[str, int] = SLOTS
) -> tuple[list[Told], list[Withheld]]:
    """Returns the cues that are told under a budget, best first, and those that are not, with the reason.

    The best cue has its place first. Then each kind fills its own places, so that none crowds the others out, and the
    best of the others follow. Of cues that say the same, one is told: an own cue rather than one of the first library.
    """
    withheld = [Withheld(fired=item, reason=reason) for item in fired if (reason := barred(item.cue))]
    standing = [item for item in fired if not barred(item.cue)]
    own = [item for item in standing[:RESERVED_AMONG] if STARTER not in item.cue.tags]
    displaced = [item for item in standing if STARTER in item.cue.tags and any(alike(item, other) for other in own)]
    withheld += [Withheld(fired=item, reason="alike") for item in displaced]
    standing = [item for item in standing if item not in displaced]
    room = budget - counter.count(say.HEADING)
    told: dict[UUID, Told] = {}
    for item in [*standing[:1], *_reserved(standing, slots), *standing]:
        if item.cue.cue_id in told or say.least_tokens(item.cue) > room:
            continue
        entry = _told(item, plan, counter, detailed=item in standing[:DETAILED])
        if entry.tokens > room:
            entry = _told(item, plan, counter, detailed=False)
        if entry.tokens <= room and not any(alike(item, other.fired) for other in told.values()):
            told[item.cue.cue_id] = entry
            room -= entry.tokens
    kept = [told[item.cue.cue_id] for item in standing if item.cue.cue_id in told]
    withheld += [
        Withheld(fired=item, reason="alike" if any(alike(item, other.fired) for other in kept) else "budget")
        for item in standing
        if item.cue.cue_id not in told
    ]
    return kept, withheld


def barred(cue: Cue) -> str:
    """Returns the reason why a cue may not stand in the section; empty if it may."""
    if cue.suspect:
        return "suspect"
    return "" if cue.trust == PERSON else "trust"


def _reserved(standing: Sequence[Fired], slots: Mapping[str, int]) -> list[Fired]:
    best = standing[:RESERVED_AMONG]
    return [
        item
        for kind, places in slots.items()
        for item in [item for item in best if item.cue.kind == kind][: max(0, places)]
    ]


def _told(item: Fired, plan: str, counter: TokenCounter, *, detailed: bool) -> Told:
    line = say.line(item.cue, detailed=detailed)
    against = say.contradiction(item.cue, plan)
    tokens = counter.count(line) + (0 if against is None else counter.count(f"- **{against.statement}**"))
    return Told(fired=item, line=line, tokens=tokens, contradiction=against)


def alike(one: Fired, other: Fired) -> bool:
    """Returns True if two cues say the same; two that dispute each other do not, however alike they are."""
    if other.cue.cue_id in one.cue.disputed_by:
        return False
    if one.meaning is None or other.meaning is None or one.meaning.shape != other.meaning.shape:
        return one.cue.lesson == other.cue.lesson
    return float(one.meaning @ other.meaning) >= ALIKE
