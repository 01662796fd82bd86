"""Tells if two texts say the same: by shingles, words, numbers and negations; thresholds are the callers'. Pure."""

import re
from collections.abc import Set
from functools import lru_cache
from typing import NamedTuple, TypeVar

from app.foundation.text.words import STEM, WORD

T = TypeVar("T")
SHINGLE_WORDS = 4
"""Words of a shingle (Broder 1997): unrelated texts share runs of three, an edited sentence loses runs of five."""
NEGATION = re.compile(
    r"\b(?:not?|never|none|neither|nor|without|cannot|hardly|fails? to|failed to|не|нет|ни|без|nicht|kein\w*|nie|ohne|"
    r"ne|pas|sans|jamais|sin|nunca)\b|n['’]t\b|[不没]",
    re.IGNORECASE,
)
_NEUTRAL = frozenset(
    word[:STEM]
    for word in """
    the a an and of in on at to for from by with as is are was were be been it its this that these those has
    have had do does did so they their them he she his her we our you your i my me which who can will could
    should would may might must shall also because since hence thus therefore there here see note noted earlier
    previous previously already again according memory history reported states stated says said и в на с по для
    из от что это как к у о за же был была были есть der die das und ein eine ist war le la les et un une des
    est el los las y en
    """.split()  # noqa: SIM905 - as above
)
"""Stems of words that do not change a statement: articles, copulas, conjunctions, and words for its author.
Comparisons (more, over, before, only) are not among them."""
_MEASURE = re.compile(r"((?:[<>≤≥]=?\s?|[-+−])?\d+(?:[.,]\d+)*)\s?(%|‰|[^\W\d_]{1,3}\b)?")
"""A number with its sign or comparison, and its unit."""
COMPARED_CHARACTERS = 4_000
"""Characters at each end of a text that are compared; a text longer than both is compared by its ends and its
length. A chunk, an observation and a turn are shorter. Comparing 250 whole texts of 20,000 characters took 5 s."""
_REMEMBERED = 2_048
"""Texts whose wording is remembered: those that are hits again and again."""
SHORTEST_REWORDED = 8
"""Least words of a text that is compared in other words: a shorter text is too short for a sure result."""


def shingles(text: str) -> frozenset[str]:
    """Returns the case-folded runs of SHINGLE_WORDS words; of a shorter text, all its words as one run."""
    words = WORD.findall(text.casefold())
    if len(words) <= SHINGLE_WORDS:
        return frozenset({" ".join(words)} if words else ())
    return frozenset(map(" ".join, zip(*(words[at:] for at in range(SHINGLE_WORDS)), strict=False)))


def resemblance(one: frozenset[T], other: frozenset[T]) -> float:
    """Returns the Jaccard index of two sets of shingles, 0 to 1; 0 if both are empty."""
    shared = len(one & other)
    together = len(one) + len(other) - shared
    return shared / together if together else 0.0


def share_of_smaller(one: Set[T], other: Set[T]) -> float:
    """Returns the share of the smaller of two sets that both have; 0 if one is empty."""
    smaller = min(len(one), len(other))
    return len(one & other) / smaller if smaller else 0.0


def same_figures(one: str, other: str) -> bool:
    """Tells if two texts have the same numbers and equally many negations."""
    return measures(one) == measures(other) and len(NEGATION.findall(one)) == len(NEGATION.findall(other))


class Wording(NamedTuple):
    """The words of a text, as near-identical texts are told by them."""

    length: int
    """Length of the text in characters."""
    runs: frozenset[int]
    """Its runs of words as hashes, which take half the memory."""

    def is_near(self, other: "Wording", least: float) -> bool:
        """Tells if another text is near-identical: by the Jaccard index of both, and by the lengths of long texts.

        The sizes of the two sets alone exclude most pairs.
        """
        shortest, longest = len(self.runs), len(other.runs)
        if shortest < least * longest or longest < least * shortest or resemblance(self.runs, other.runs) < least:
            return False
        shortest, longest = sorted((self.length, other.length))
        return longest <= 2 * COMPARED_CHARACTERS or shortest >= least * longest


@lru_cache(maxsize=_REMEMBERED)
def wording(body: str) -> Wording:
    """Returns the form in which `body` is compared; a text without words, like a smile, is one run."""
    body = body.strip()
    shown = body
    if len(body) > 2 * COMPARED_CHARACTERS:
        shown = f"{body[:COMPARED_CHARACTERS]} {body[-COMPARED_CHARACTERS:]}"
    return Wording(len(body), frozenset(map(hash, shingles(shown) or {shown})))


class Statement(NamedTuple):
    """The statement of a text, in a form that is compared with others."""

    measures: frozenset[tuple[str, str]]
    words: frozenset[str]
    """The stems of its words without numbers."""
    negations: int

    def adds_nothing(self, known: "Statement") -> bool:
        """Tells if `known` has all measures and words, except neutral words, and equally many negations.

        Vectors cannot tell this: two texts of which one says "accepted" and the other "rejected" have a cosine of up to
        0.99. So one new word or a different number of negations makes a text new.
        """
        if self.negations != known.negations or not self.measures <= known.measures:
            return False
        return self.words - known.words <= _NEUTRAL


def statement_of(text: str) -> Statement:
    """Returns what a text states."""
    return Statement(measures(text), _stems(text), len(NEGATION.findall(text)))


def adds_nothing(text: str, known: str) -> bool:
    """Tells if a text states nothing that `known` does not state."""
    return statement_of(text).adds_nothing(statement_of(known))


def measures(text: str) -> frozenset[tuple[str, str]]:
    """Returns the numbers of a text with their signs and units."""
    return frozenset((value.replace(" ", ""), unit.lower()) for value, unit in _MEASURE.findall(text))


def _stems(text: str) -> frozenset[str]:
    return frozenset(word[:STEM] for word in WORD.findall(text.lower()) if not word[0].isdigit())
