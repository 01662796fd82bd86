"""Features of the best hits' texts, which the arms miss: phrases, times, speakers, questions and answers.
Also leaves out hits that repeat a better one. Pure."""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol, TypeVar

from app.text.words import STOP_WORDS, named, resemblance, shingles

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


NEAR = 0.8
"""Jaccard resemblance from which on two texts are one: a changed number or name in a 100-word text stays above it,
a changed sentence does not."""

COMPARED_CHARACTERS = 4_000
"""At either end of a text: what is longer than both is compared by its ends and its length. A chunk, an observation and
a turn are shorter; of 250 texts of 20,000 characters all runs of words took 5 s."""


class Titled(Protocol):
    """A hit, as far as dedupe looks at it."""

    @property
    def kind(self) -> str:
        """The memory's kind."""

    @property
    def title(self) -> str:
        """Two equal titles, but for case and white space, are one memory; an empty one equals none."""

    @property
    def body(self) -> str:
        """The text."""


T = TypeVar("T", bound=Titled)


class Wording(NamedTuple):
    """The form in which texts are compared."""

    length: int
    """Characters."""
    runs: frozenset[str]


def wording(body: str) -> Wording:
    """Returns the form in which `body` is compared; a text without a word, like a smile, is its own only run."""
    body = body.strip()
    shown = body
    if len(body) > 2 * COMPARED_CHARACTERS:
        shown = f"{body[:COMPARED_CHARACTERS]} {body[-COMPARED_CHARACTERS:]}"
    return Wording(len(body), shingles(shown) or frozenset({shown}))


def deduplicated(
    ranked: Iterable[T],
    *,
    title_kinds: frozenset[str],
    by_text: bool = True,
    wording: Callable[[str], Wording] = wording,
) -> Iterator[T]:
    """Yields `ranked` without those that say what a better ranked one does, by near-identical text or (these kinds)
    title.

    A caller that asks again with more gives a `wording` that remembers.
    """
    titles: set[str] = set()
    kept: list[Wording] = []
    for item in ranked:
        title = " ".join(item.title.casefold().split()) if item.kind in title_kinds else ""
        words = wording(item.body) if by_text else None
        if title in titles or (words and any(_near(words, other) for other in kept)):
            continue
        titles |= {title} if title else set()
        kept += [words] if words else []
        yield item


def _near(one: Wording, other: Wording) -> bool:
    """Returns True for near-identical texts. Most pairs fail by size alone: two sets share at most the smaller one."""
    shortest, longest = sorted((len(one.runs), len(other.runs)))
    if shortest < NEAR * longest or resemblance(one.runs, other.runs) < NEAR:
        return False
    shortest, longest = sorted((one.length, other.length))
    return longest <= 2 * COMPARED_CHARACTERS or shortest >= NEAR * longest
