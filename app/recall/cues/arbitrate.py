"""Decides which of the matched cues are shown: those whose cost is lower shown than kept back. Pure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from msgspec import Struct

from app.foundation.models.protocols import TokenCounter, Vector
from app.recall.cues import render
from app.recall.cues.cue import AGENT, CORRECTION, PERSON, PREFERENCE, STARTER, Cue
from app.recall.cues.match import CueMatch
from app.recall.cues.signs import signs_of
from app.recall.cues.ways import does_right, rejected_in

FALSE = 1.0
"""Cost of a cue that is shown and does not apply: attention, and trust in the next one. The unit of all costs."""
MISSED, GRAVE = 0.95, 3.0
"""Cost of a cue that applies and is not shown: of one without consequence, and what is added for a consequence of 1. So
a lesson of low consequence is shown from a probability of 0.39 on, one of medium from 0.29, a severe one from 0.20.
Chosen with CROWD on lessons-dev, our own sessions and four real logs, by weights that had not seen the plan's project:
0.59, 0.47 and 0.75 of the plans are answered at a precision of 0.81, 0.67 and 0.57. With 0.7, 2.8 and a factor of 3:
0.58, 0.43 and 0.75 at 0.82, 0.65 and 0.53. Of 135 requests about other matters (flows-dev) 5 instead of 4 fire one."""
CROWD = 4.0
"""Factor of the cost of a false cue for each one that is shown before it: it takes attention from them too. One that
surely applies is shown beside a wrong one that stands first: a second one of medium consequence from 0.62 on."""
MOST_OF_SECTION = 3
AGE, HALF_LIFE_DAYS = 0.3, 365.0
"""Log-odds that age takes away at most, and the days after which half of it is gone: a long tail, because a lesson
stays true."""
TWO_DATES = 0.2
"""Log-odds added for a cue seen on two dates."""
OUTCOMES, DOUBTED = 0.5, 4
"""Log-odds added if the cue was always heeded, taken if always ignored; and the outcomes that count as much as the
prior."""
RATED = 0.15
"""Log-odds added for each point of the ratings."""
RIGHT = 9.0
"""Log-odds taken from a cue whose way the plan follows already: nobody is warned of what he does right. A plan in the
cue's own words has up to 8."""
LEAST_SURE = 1e-6
"""Confidence of a cue that its writer is not sure of at all. With the confidence in the score 0.29 of the cues that are
told of real logs are right instead of 0.22, and as many plans are answered, each project left out."""
UNLIKELY = -3.0
"""Log-odds below which a cue is not shown whatever it says: its text is not read."""
WISHES = frozenset({CORRECTION, PREFERENCE})
ALIKE = 0.65
"""Cosine of trigger and lesson from which two cues say the same, so that one of them is shown."""
CONSIDERED = 20
"""Likeliest cues that are read: the thresholds tell three at most, and a section for a person names the others."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Fired:
    """A matched cue, with every component of its score."""

    cue: Cue
    score: float
    """The probability that it is a lesson (its confidence) and applies to the plan."""
    explain: Mapping[str, float]
    meaning: Vector | None = field(repr=False)
    """The vector of its trigger and lesson together."""


class ShownCue(NamedTuple):
    """A cue as the section tells it."""

    fired: Fired
    entry: str
    tokens: int
    contradiction: render.Contradiction | None


class Nearly(Struct, frozen=True, kw_only=True, rename={"cue_id": "id"}):
    """A cue that matched and is not shown."""

    cue_id: UUID
    kind: str
    lesson: str
    score: float
    reason: str
    """`unlikely`, `enough` (beside those that are shown), `trust`, `suspect`, `alike` or `budget`."""


def rank(matches: Iterable[CueMatch], cues: Mapping[UUID, Cue], *, plan: str, now: datetime) -> list[Fired]:
    """Returns the matched cues with their probabilities, the likeliest first."""
    found = [_score(match, cues[match.cue_id], plan, now) for match in matches if match.cue_id in cues]
    return sorted(found, key=lambda item: (-item.score, item.cue.cue_id))


def _score(match: CueMatch, cue: Cue, plan: str, now: datetime) -> Fired:
    age = max(timedelta(), now - cue.valid_from) / timedelta(days=1)
    settled = cue.heeded + cue.ignored
    parts = {
        **match.parts,
        "recency": -AGE * (1 - math.exp2(-age / HALF_LIFE_DAYS)),
        "two_dates": TWO_DATES if len(cue.seen_on) > 1 else 0.0,
        "outcomes": OUTCOMES * (cue.heeded - cue.ignored) / (settled + DOUBTED),
        "rated": RATED * cue.quality,
        "right": -RIGHT if match.odds > UNLIKELY and does_right(cue, plan, render.way_of(cue)) else 0.0,
    }
    odds = sum(parts.values())
    applies, sure = 1 / (1 + math.exp(-odds)), max(cue.confidence, LEAST_SURE)
    score = round(applies * sure, 6)
    parts["confidence"] = math.log(applies * sure / (1 - applies * sure)) - odds if sure < 1 else 0.0
    explain = {name: round(value, 3) for name, value in parts.items() if value}
    return Fired(cue=cue, score=score, explain=explain, meaning=match.meaning)


def threshold(consequence: float, before: int = 0) -> float:
    """Returns the probability from which telling a cue costs less than keeping it back, after others were shown."""
    false = FALSE * CROWD**before
    return false / (false + MISSED + GRAVE * consequence)


def choose(
    fired: Sequence[Fired], *, plan: str, budget: int, counter: TokenCounter, min_score: float | None = None
) -> tuple[list[ShownCue], list[Nearly]]:
    """Returns the cues that are shown under a budget, a person's words first, and the others, each with the reason.

    A cue is shown from its threshold on, or from `min_score` on; one that disputes another counts as one with it. Of
    cues that say the same, one is shown: an own cue rather than one of the first library.
    """
    shown: list[ShownCue] = []
    withheld: list[Nearly] = []
    room = budget - counter.count(render.HEADING)
    for item in sorted(fired, key=lambda item: STARTER in item.cue.tags):
        rest = [other for other in shown if other.fired.cue.cue_id not in item.cue.disputed_by]
        alone, least = (
            threshold(item.cue.consequence, before) if min_score is None else min_score for before in (0, len(rest))
        )
        reason = bar_reason(item.cue) or _doubt(item, shown, alone, least)
        entry = None if reason else _within(item, plan, room, counter)
        if entry:
            shown.append(entry)
            room -= entry.tokens
        else:
            same = {name: getattr(item.cue, name) for name in ("cue_id", "kind", "lesson")}
            withheld.append(Nearly(**same, score=item.score, reason=reason or "budget"))
    shown.sort(key=lambda item: (item.fired.cue.by_agent, -item.fired.score))
    return shown, withheld


def fit_to_inform(plan: str, nearly: Iterable[Nearly]) -> frozenset[UUID]:
    """Returns the cues that a history may have as knowledge: none that others keep back, and wishes for a question."""
    asks = plan.rstrip().endswith("?") or "open_asks" in signs_of(plan, "person")
    kinds = frozenset() if asks else WISHES
    return frozenset(it.cue_id for it in nearly if it.kind not in kinds and it.reason not in {"enough", "alike"})


def bar_reason(cue: Cue) -> str:
    """Returns the reason why a cue may not stand in the section; empty if it may."""
    if cue.suspect:
        return "suspect"
    return "" if cue.trust in {PERSON, AGENT} else "trust"


def _doubt(item: Fired, shown: Sequence[ShownCue], alone: float, least: float) -> str:
    """Returns why a cue is not worth its place beside those that are shown; empty if it is."""
    if any(alike(item, other.fired) for other in shown):
        return "alike"
    if item.score < alone:
        return "unlikely"
    return "enough" if item.score < least or len(shown) == MOST_OF_SECTION else ""


def _within(item: Fired, plan: str, room: int, counter: TokenCounter) -> ShownCue | None:
    """Returns a cue in the fullest form that there is room for; None if there is room for none.

    A warning says the reason and the way itself, so a cue without its details follows it. What an agent concluded is no
    warning: that would be an order, above a person's words and without its author.
    """
    if render.least_tokens(item.cue) > room:
        return None
    against = None if item.cue.trust == AGENT else render.contradiction(item.cue, plan, applies=True)
    full, short = (render.entry(item.cue, detailed=detailed) for detailed in (True, False))
    for entry, warning in ((full if against is None else short, against), (short, None)):
        tokens = counter.count(entry) + (0 if warning is None else counter.count(f"- **{warning.statement}**"))
        if tokens <= room:
            return ShownCue(fired=item, entry=entry, tokens=tokens, contradiction=warning)
    return None


def alike(one: Fired, other: Fired) -> bool:
    """Returns True if two cues say the same; two of which one rejects the other do not, however alike they are."""
    if other.cue.cue_id in one.cue.disputed_by or len({one.cue.kind, other.cue.kind} - WISHES) > 1:
        return False
    if rejected_in(one.cue, other.cue.lesson) or rejected_in(other.cue, one.cue.lesson):
        return False
    if one.meaning is None or other.meaning is None or one.meaning.shape != other.meaning.shape:
        return one.cue.lesson == other.cue.lesson
    return float(one.meaning @ other.meaning) >= ALIKE
