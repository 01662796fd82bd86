"""Features of the best hits' texts, which the arms miss: phrases, times, speakers, questions and answers.
Also leaves out hits that repeat a better one. Pure."""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, Protocol, TypeVar

from app.foundation.text.words import IDEOGRAPH, STOP_WORDS, Wording, titles_in_query, wording
from app.recall.retrieval.rank.features import values

_READ_CHARACTERS = 4_000
"""Characters that are read of each text and of the query: the important part is early, and the caller waits."""
_REMEMBERED = 2_048
"""Texts whose forms are remembered, about 12 kB each: those that are hits again and again."""
_PAIR_LIMIT = 64
"""Most pairs of words that are searched for in each text; a question has ten."""
LONG_ENOUGH = 100
"""Characters of a turn that loses nothing (benchmarks/retrieval.md compares other lengths)."""
_LETTERS_OF_AN_IDEOGRAPH = 3
"""Characters that a Chinese or Japanese one counts as: of 100 memories the English text has 3.4 times as many (median)
as its Chinese translation."""
_QUESTION_MARKS = ("?", "？", "؟")
_WORDS_ONLY = bytes(ord(sign) if not sign.isascii() or sign.isalnum() else ord(" ") for sign in map(chr, range(256)))
"""Translation of ASCII marks to blanks; all other bytes stay. It takes a fifth of a regular expression's time."""

_STOPS = frozenset(word.encode() for word in STOP_WORDS)
_ASKS_WHEN = re.compile(
    r"\s*(?:when|how long|(?:(?:in|on|during|since) )?(?:what|which) (?:year|month|week|day|date))\b"
)
_TELLS_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|ago|since|recently|(?:last|next|this|past) (?:few )?(?:night|weekend|week|"
    r"month|year|spring|summer|autumn|fall|winter)|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|"
    r"april|june|july|august|september|october|november|december|(?:19|20)[0-9][0-9])\b"
)
_FIRST_PERSON = re.compile(
    r"\b(?:i|me|my|myself|we|our|ours|ich|mich|mir|mein\w*|wir|unser\w*|je|j|moi|mon|mes|nous|notre|yo|mi|mis|nosotros|я|"
    r"меня|мне|мо[йяёи]|мою|мо[еи][йх]|мы|нас|нам|наш\w*)\b"
)


_IN_USE = values("text_features")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFeatures:
    """Share by which each feature of a text changes its evidence; weights.toml says where it was measured."""

    phrases: float = _IN_USE["phrases"]
    time: float = _IN_USE["time"]
    own: float = _IN_USE["own"]
    asks: float = _IN_USE["asks"]
    answers: float = _IN_USE["answers"]
    short: float = _IN_USE["short"]


class HitText(NamedTuple):
    """A hit's text."""

    title: str
    body: str
    source: Hashable | None
    ordinal: int | None
    """Its place as a turn of a conversation; None if it is not a turn."""


class TextReading(NamedTuple):
    """The features of one text."""

    phrases: float
    """Share of the query's pairs of neighbouring words that are neighbours in the text too."""
    time: bool
    """True if the query asks for a time and the text tells one."""
    own: bool
    """True if the text is in the first person and the query names its speaker."""
    asks: bool
    """True if the text ends in a question: the next turn of the source is more likely to have the answer."""
    answers: bool
    """True if the turn before it in its source, which is among the hits too, has a question."""
    short: float
    """Share of LONG_ENOUGH characters that a turn lacks, 0 to 1: short turns agree, thank and greet more than they
    say."""


def readings(query: str, texts: Sequence[HitText]) -> list[TextReading]:
    """Returns the features of each text for the query."""
    asked = query[:_READ_CHARACTERS].lower()
    pairs, when = _pairs(asked), _ASKS_WHEN.match(asked) is not None
    lowered = [_lower(text.title, text.body[:_READ_CHARACTERS]) for text in texts]
    speakers = titles_in_query(asked, [text.title for text in texts])
    questions = {
        (text.source, text.ordinal)
        for text in texts
        if text.ordinal is not None and any(mark in text.body for mark in _QUESTION_MARKS)
    }
    return [
        TextReading(
            phrases=_share(pairs, words),
            time=when and _TELLS_TIME.search(words) is not None,
            own=speaks and text.ordinal is not None and _FIRST_PERSON.search(words) is not None,
            asks=text.ordinal is not None and text.body.rstrip().endswith(_QUESTION_MARKS),
            answers=text.ordinal is not None and (text.source, text.ordinal - 1) in questions,
            short=0.0 if text.ordinal is None else _shortness(text.body.strip()),
        )
        for text, words, speaks in zip(texts, lowered, speakers, strict=True)
    ]


@lru_cache(maxsize=_REMEMBERED)
def _lower(title: str, body: str) -> str:
    return f"{title} {body}".lower()


def _shortness(said: str) -> float:
    length = len(said)
    if length < LONG_ENOUGH and not said.isascii():
        length += (_LETTERS_OF_AN_IDEOGRAPH - 1) * len(IDEOGRAPH.findall(said))
    return max(0.0, 1 - length / LONG_ENOUGH)


def _pairs(asked: str) -> list[bytes]:
    """Returns pairs of neighbouring words, except of two stop words. The second may be longer in a text (plurals)."""
    words = _words_with_blanks(asked).split()
    pairs = (b" %b %b" % (one, other) for one, other in pairwise(words) if one not in _STOPS or other not in _STOPS)
    return list(dict.fromkeys(pairs))[:_PAIR_LIMIT]


def _share(pairs: Sequence[bytes], lowered: str) -> float:
    if not pairs:
        return 0.0
    words = _words_with_blanks(lowered)
    return sum(map(words.__contains__, pairs)) / len(pairs)


@lru_cache(maxsize=_REMEMBERED)
def _words_with_blanks(lowered: str) -> bytes:
    """Returns the words, with one blank before each. Splitting and joining would take three times as long."""
    words = b" " + lowered.encode().translate(_WORDS_ONLY)
    while b"  " in words:
        words = words.replace(b"  ", b" ")
    return words


_NEAR = 0.8
"""Least Jaccard index of two texts that are duplicates. A 100-word text with a changed number or name stays above
it; one with a changed sentence does not."""


class _Titled(Protocol):
    """The fields of a hit that dedupe reads."""

    @property
    def kind(self) -> str:
        """The memory's kind."""

    @property
    def title(self) -> str:
        """The memory's title, compared without case and white space; an empty title equals no other."""

    @property
    def body(self) -> str:
        """The memory's text."""


T = TypeVar("T", bound=_Titled)


def drop_duplicates(
    ranked: Iterable[T],
    *,
    title_kinds: frozenset[str],
    by_text: bool = True,
    paired: Callable[[T], bool] = lambda _: False,
) -> Iterator[T]:
    """Yields `ranked` without the duplicates of better hits, by near-identical text or, for these kinds, by title.

    A `paired` hit belongs to another one that may have its title, so only their texts are compared.
    """
    titles: set[str] = set()
    kept: list[Wording] = []
    for item in ranked:
        title = " ".join(item.title.casefold().split()) if item.kind in title_kinds else ""
        words = wording(item.body) if by_text else None
        if (title in titles and not paired(item)) or (words and any(words.is_near(other, _NEAR) for other in kept)):
            continue
        titles |= {title} if title else set()
        kept += [words] if words else []
        yield item
