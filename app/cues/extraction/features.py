"""Describes a user's turn by numbers: the signs in its words, who spoke before it, and what came of it. Pure."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.cues.extraction.signs import patterns, signs_of
from app.cues.extraction.situation import REQUESTS, act_in
from app.cues.extraction.speech import Speech, sentences_in, speech_of
from app.intake.sessions.transcript import ASSISTANT, USER, Turn

TAIL, HEAD = 500, 250
"""Characters at the end of the turn before, and at the beginning of the turn after, that are read."""
BRIEF, LONG = 40, 400
"""Characters of a turn that is brief, and of one that is long."""
Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A user's turn with what surrounds it."""

    turn: Turn
    speech: Speech
    signs: frozenset[str]
    earlier: int
    """Number of the user's turns before it."""
    before: str
    """The end of what the agent said before it; "" if it said nothing."""
    after: str
    """The beginning of what the agent said next."""
    previous: str
    """The user's turn before it."""
    following: str
    """The user's next turn."""
    asked: str
    """The user's last request before that; "" if there is none."""


def heard(turns: Sequence[Turn]) -> list[Heard]:
    """Returns the user's turns of a session, each with its surroundings."""
    users, said = list[Turn](), [list[str]()]
    for turn in turns:
        if turn.role == USER and turn.text.strip():
            users.append(turn)
            said.append([])
        elif turn.role == ASSISTANT:
            said[-1].append(turn.text)
    between = ["\n".join(texts).strip() for texts in said]
    found: list[Heard] = []
    asked = ""
    for place, turn in enumerate(users):
        speech = speech_of(turn.text)
        if place and ("open_task" in found[-1].signs or act_in(found[-1].speech.text, REQUESTS)):
            asked = found[-1].speech.text
        previous = users[place - 1] if place else None
        following = users[place + 1] if place + 1 < len(users) else None
        found.append(
            Heard(
                turn=turn,
                speech=speech,
                signs=signs_of(speech.text),
                earlier=place,
                before=between[place][-TAIL:],
                after=between[place + 1][:HEAD],
                previous=previous.text if previous else "",
                following=following.text if following else "",
                asked=asked,
            )
        )
    return found


def names() -> list[str]:
    """Returns the names of the features, in their order."""
    return [*patterns("signs"), *SHAPE, *AROUND]


def numbers(item: Heard) -> Vector:
    """Returns the features of a turn."""
    return np.array([*(name in item.signs for name in patterns("signs")), *_shape(item), *_around(item)], float)


SHAPE = ("length", "brief", "long", "sentences", "ends_asking", "starts_asking", "pasted", "mostly_pasted", "quotes",
          "wordless", "shouts", "exclaims", "lists", "asks_plainly", "symptom_only")  # fmt: skip
_JUDGES = frozenset({"negated", "wrong", "you_did", "did_you", "forbid", "lookback", "contrast"})
_TELLS = _JUDGES - {"negated"} | {"ought", "prefer", "lasting", "decide", "discover", "precedent", "procedure"}
"""Signs by which a question, or a report of a symptom, says more than that."""


def _shape(item: Heard) -> list[float]:
    text, parts = item.speech.text, sentences_in(item.speech.text)
    return [
        math.log1p(len(text)) / 5,
        len(text) < BRIEF,
        len(text) > LONG,
        min(len(parts), 6) / 6,
        text.rstrip().endswith("?"),
        bool(parts) and parts[0].endswith("?"),
        item.speech.pasted,
        item.speech.pasted > 0.5,  # noqa: PLR2004 - half of it
        item.speech.quotes,
        not text,
        any(word.isupper() and len(word) > 3 and word.isalpha() for word in text.split()),  # noqa: PLR2004 - no acronym
        "!" in text,
        item.speech.text.count("\n- ") + item.speech.text.count("\n* ") > 1,
        bool(parts) and all(part.endswith("?") for part in parts) and not item.signs & _JUDGES,
        bool(item.signs & {"symptom", "complaint"}) and not item.signs & _TELLS,
    ]


PLACED = ("first", "second", "repeated", "previous_no", "following_no", "following_go")
"""Features that tell where among the person's turns it stands."""
ANSWERED = ("before_asked", "before_claimed", "before_found", "before_options", "after_conceded", "after_took_up",
            "after_missing")  # fmt: skip
"""Features that tell what the agent said before and after it."""
AROUND = (*PLACED, *ANSWERED)
_OPTIONS = re.compile(r"(?:^|\s)(?:[1-4a-d][.)]|option [1-4a-d]\b|variant\w* [1-4a-d]\b)", re.IGNORECASE)


def _around(item: Heard) -> list[float]:
    before, after = signs_of(item.before[-200:], "replies"), signs_of(item.after, "replies")
    previous, following = signs_of(item.previous[:200]), signs_of(item.following[:200])
    asked = "asked" in before or item.before.rstrip().endswith("?")
    return [
        item.earlier == 0,
        item.earlier == 1,
        item.turn.text.strip() == item.previous.strip(),
        bool(previous & _REBUKES),
        bool(following & _REBUKES),
        "open_go" in following and not following & _REBUKES,
        asked,
        "claimed" in signs_of(item.before, "replies"),
        "found" in signs_of(item.before, "replies"),
        asked and len(_OPTIONS.findall(item.before)) > 1,
        "conceded" in after,
        "took_up" in after and "conceded" not in after,
        not item.after,
    ]


_REBUKES = frozenset({"open_no", "wrong", "you_did", "did_you", "forbid", "lookback"})
