"""Weighs a cue: the cost of the mistake it is about, told from how the session went on, and whose it is. Pure."""

from collections.abc import Sequence

from app.cues.cue import PROJECT, USER
from app.cues.extraction.features import Heard, Vector
from app.cues.extraction.model import gravity
from app.cues.extraction.signs import signs_of

BASE, PER_DEGREE = 0.25, 0.2
"""Consequence of a cue of low consequence, 0 to 1, and what a degree more adds: from its signs and its kind, as
`model.gravity` tells."""
TONES = {"frustrated": 0.2, "severe": 0.15, "harm": 0.2, "minor": -0.15}
"""For words of anger, emphasis, possible damage (data, money, security, production), and trifles."""
REVERTED = 0.1
"""For work that was undone."""
PER_TURN, MOST_TURNS = 0.05, 5
"""For each of the user's turns until the mend was accepted."""
SLOW, PER_SLOW = 1_800.0, 0.1
"""Seconds until the mend was accepted, from which on that counts."""
LEAST, MOST = 0.1, 1.0
REBUKES = frozenset({"open_no", "wrong", "you_did", "did_you", "forbid", "lookback", "complaint"})


def consequence_of(items: Sequence[Heard], place: int, kind: str, described: Vector) -> float:
    """Returns the cost of the mistake, 0 to 1: from its features and its kind, from tone, undone work, and turns and
    time until it was repaired.
    """
    item = items[place]
    tones = signs_of(item.speech.text, "tone")
    accepted = turns_until_accepted(items, place)
    value = (
        BASE + PER_DEGREE * gravity(described, kind) + sum(weight for name, weight in TONES.items() if name in tones)
    )
    value += REVERTED * ("failed" in item.signs) + PER_TURN * accepted
    if accepted and _seconds(item, items[place + accepted]) > SLOW:
        value += PER_SLOW
    return round(min(max(value, LEAST), MOST), 2)


def turns_until_accepted(items: Sequence[Heard], place: int) -> int:
    """Counts the user's turns after this one that still complain, up to one that does not."""
    following = items[place + 1 : place + 1 + MOST_TURNS]
    return next((number for number, later in enumerate(following) if not later.signs & REBUKES), len(following))


def _seconds(first: Heard, last: Heard) -> float:
    if first.turn.at is None or last.turn.at is None:
        return 0.0
    return (last.turn.at - first.turn.at).total_seconds()


def scope_of(quote: str) -> str:
    """Tells if a lesson is about the person, wherever it works, or about this project."""
    return USER if "everywhere" in signs_of(quote, "tone") else PROJECT
