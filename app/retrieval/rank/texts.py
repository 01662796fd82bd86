"""Reads the texts of the best hits for what the arms' scores miss: phrases, times, speakers, questions and answers.
Pure."""

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from app.text.words import STOP_WORDS, named

READ_CHARACTERS = 4_000
"""Read of each text and of the query: what matters stands early, and the answer waits."""
PAIR_LIMIT = 64
"""Pairs of words that are looked for in each text; a question has ten."""
QUESTION_MARKS = ("?", "？", "؟")
WORDS_ONLY = bytes(ord(sign) if not sign.isascii() or sign.isalnum() else ord(" ") for sign in map(chr, range(256)))
"""Marks become blanks; all letters beyond ASCII stay. On bytes it takes a fifth of a regular expression's time."""

STOPS = frozenset(word.encode() for word in STOP_WORDS)
ASKS_WHEN = re.compile(
    r"\s*(?:when|how long|(?:(?:in|on|during|since) )?(?:what|which) (?:year|month|week|day|date))\b"
)
TELLS_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|ago|since|recently|(?:last|next|this|past) (?:few )?(?:night|weekend|week|"
    r"month|year|spring|summer|autumn|fall|winter)|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|"
    r"april|june|july|august|september|october|november|december|(?:19|20)[0-9][0-9])\b"
)
FIRST_PERSON = re.compile(
    r"\b(?:i|me|my|myself|we|our|ours|ich|mich|mir|mein\w*|wir|unser\w*|je|j|moi|mon|mes|nous|notre|yo|mi|mis|nosotros|я|"
    r"меня|мне|мо[йяёи]|мою|мо[еи][йх]|мы|нас|нам|наш\w*)\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFeatures:
    """Share by which each feature of a text changes its evidence; measured on LoCoMo dev, HotpotQA and reports
    (docs/retrieval.md)."""

    phrases: float = 0.4
    """All of the query's pairs of words stand together in it."""
    time: float = 0.2
    """The query asks when, and it tells a time."""
    own: float = 0.15
    """The query names who says it, and they tell of themselves."""
    asks: float = -0.1
    """It ends in a question."""
    answers: float = 0.1
    """The one before it has a question."""


class Text(NamedTuple):
    """A hit's text."""

    title: str
    body: str
    source: Hashable | None
    ordinal: int | None


class Reading(NamedTuple):
    """The features of one text."""

    phrases: float
    """Share of the query's pairs of neighbouring words that stand together in it too."""
    time: bool
    """The query asks when, and it tells a time."""
    own: bool
    """It is a turn of whom the query names, in the first person: they tell themselves what is asked of them."""
    asks: bool
    """It ends in a question: the next of its source is more likely to have the answer."""
    answers: bool
    """The one before it in its source, which was read too, has a question."""


def readings(query: str, texts: Sequence[Text]) -> list[Reading]:
    """Returns the features of each text for the query."""
    asked = query[:READ_CHARACTERS].lower()
    pairs, when = _pairs(asked), ASKS_WHEN.match(asked) is not None
    lowered = [f"{text.title} {text.body[:READ_CHARACTERS]}".lower() for text in texts]
    speakers = named(asked, [text.title for text in texts])
    questions = {
        (text.source, text.ordinal)
        for text in texts
        if text.ordinal is not None and any(mark in text.body for mark in QUESTION_MARKS)
    }
    return [
        Reading(
            phrases=_share(pairs, words),
            time=when and TELLS_TIME.search(words) is not None,
            own=speaks and text.ordinal is not None and FIRST_PERSON.search(words) is not None,
            asks=text.ordinal is not None and text.body.rstrip().endswith(QUESTION_MARKS),
            answers=text.ordinal is not None and (text.source, text.ordinal - 1) in questions,
        )
        for text, words, speaks in zip(texts, lowered, speakers, strict=True)
    ]


def _pairs(asked: str) -> list[bytes]:
    """Returns neighbouring words, the second of which may go on in a text (plurals); two stop words say nothing."""
    words = _spaced(asked).split()
    pairs = (b" %b %b" % (one, other) for one, other in pairwise(words) if one not in STOPS or other not in STOPS)
    return list(dict.fromkeys(pairs))[:PAIR_LIMIT]


def _share(pairs: Sequence[bytes], lowered: str) -> float:
    if not pairs:
        return 0.0
    words = _spaced(lowered)
    return sum(pair in words for pair in pairs) / len(pairs)


def _spaced(lowered: str) -> bytes:
    """Returns the words alone, one blank before each. To split and join them takes three times as long."""
    words = b" " + lowered.encode().translate(WORDS_ONLY)
    while b"  " in words:
        words = words.replace(b"  ", b" ")
    return words
