"""Tells which passages a later one corrects, so that an answer says what holds now. Pure."""

import math
import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from app.foundation.models.protocols import Vector
from app.foundation.text.words import content_words
from app.recall.retrieval.rank.quality import logistic

_CORRECTS = re.compile(
    r"(?i)\b(?:correct(?:ion|ed)|errat(?:um|a)|corrigendum|reopened|(?:is|are|allowed|usable|used|rated|open|"
    r"wrong|broken|happens?|occurs?|seen|cited|trusted) (?:\w+ )?again|once more|(?:is|are) back|(?:no|any) longer|"
    r"do not use|don['’]t use|must not|until further notice|newly|from now on|in force|moves? (?:up|down) to|"
    r"right (?:number|figure|value)|revised|supersede[sd]?|replaces|withdrawn|retracted|rescinded|overturned|reversed|"
    r"revoked|outdated|void|narrows to|raised to|lowered to|off the table|lifted|cancel(?:l?ed)|suspended|refuted|"
    r"disproved|turned out|mistaken|(?:is|are|was|were) (?:wrong|over|not (?:the|what|due|caused|because))|"
    r"not (?:by|because of|due to)|(?:point|matter|issue) (?:is )?closed|"
    r"(?:as of|since) (?:january|february|march|april|may|june|july|august|september|october|november|december))\b"
)
"""Words by which a text says that what was true before is not true any more."""
_PROVISIONAL = re.compile(
    r"(?i)\b(?:(?:we|i) (?:believe|guess|suspect|assume|think)|(?:our|my|a) guess|hypothes[ie]s|suppos(?:ed|edly)|"
    r"presum(?:ed|ably)|suspected|not yet|nobody has|no answer|pending|unclear|unconfirmed|on hold|paused?|for now|"
    r"so far|to be (?:decided|confirmed|clarified))\b"
)
"""Words by which a text says that it holds only until more is known; any later text on its matter corrects it."""
NEAR, RARE, ASKED, INTERCEPT = 4.3, 4.9, 6.8, -8.6
"""Coefficients of the logistic function of `_probability`, fitted on pairs of passages of six report trees whose later
files change the truth, both classes weighing the same. With each tree left out, 0.98 of the answers say nothing
outdated, and 0.90 without (benchmarks/retrieval.md)."""
_LEAST_NEAR = 0.2
"""Least cosine similarity of a correction and what it corrects. All but one of 46 pairs of the report trees are above
it; texts on different matters that share a name are often below."""
_LIKELY = 0.6
"""Least probability by which a passage is left out. From 0.5 to 0.8 the answers are equally good."""
COMPARED = 40
"""The number of best passages that are compared with one another."""


class Dated(NamedTuple):
    """A passage with what tells whether it corrects another, or is corrected."""

    text: str
    """With its title and its introduction."""
    vector: Vector | None
    source: Hashable
    """Passages of one source do not correct each other."""
    evidence: float
    """Its evidence for the query, as a share of the best passage's."""
    moment: float | None
    """The moment that its report names, in seconds; None if it names none."""
    corrects: bool
    """True if it says that something has changed."""
    provisional: bool = False
    """True if it says that it holds only until more is known."""
    series: tuple[str, tuple[int, ...]] | None = None
    """The case and the version that its place in the store names."""
    intake: int = 0
    """The number of the intake that stored it."""


@lru_cache(maxsize=4_096)
def says_so(text: str) -> bool:
    """Tells if a text says that something has changed."""
    return _CORRECTS.search(text) is not None


@lru_cache(maxsize=4_096)
def is_provisional(text: str) -> bool:
    """Tells if a text says that it holds only until more is known."""
    return _PROVISIONAL.search(text) is not None


class Correction(NamedTuple):
    """A passage that corrects another, if it is the later one; by the places of both."""

    old: int
    new: int
    probability: float


_words = lru_cache(maxsize=2_048)(content_words)


def likely_corrections(items: Sequence[Dated]) -> list[Correction]:
    """Returns the pairs of passages of which one is likely to correct the other.

    It says that something has changed, or the other says that it is provisional, and both speak of one matter. The
    order of time does not count yet, because the moments of intakes take a statement.
    """
    pairs = [
        (old, new)
        for old, before in enumerate(items)
        for new, after in enumerate(items)
        if after.source != before.source and (after.corrects or before.provisional)
    ]
    if not pairs:
        return []
    words = [_words(item.text) for item in items]
    rarity = _rarity(words)
    found = (
        Correction(old, new, _probability(items[new], items[old], words[new] & words[old], rarity))
        for old, new in pairs
    )
    return [item for item in found if item.probability >= _LIKELY]


def outdated_places(items: Sequence[Dated], likely: Sequence[Correction]) -> dict[int, int]:
    """Returns the places of passages that a later one corrects, each with the place of the one that does."""
    best: dict[int, Correction] = {}
    for item in likely:
        if _is_later(items[item.new], items[item.old]):
            best[item.old] = max(item, best.get(item.old, item), key=lambda other: (other.probability, other.new))
    found = {old: item.new for old, item in best.items()}
    return {old: last for old in found if (last := _last(old, found)) not in found}


def _last(old: int, found: Mapping[int, int]) -> int:
    """Returns the correction that none corrects; where passages correct each other in a circle, one of the circle."""
    seen = {old}
    while (old := found[old]) in found and old not in seen:
        seen.add(old)
    return old


def _rarity(texts: Sequence[frozenset[str]]) -> dict[str, float]:
    """Returns the inverse document frequency of each word, 1 for a word of one text."""
    counts = Counter(word for words in texts for word in words)
    total = len(texts)
    return {word: _idf(count, total) / _idf(1, total) for word, count in counts.items()}


def _idf(count: int, total: int) -> float:
    return math.log(1 + (total - count + 0.5) / (count + 0.5))


def _probability(new: Dated, old: Dated, shared: frozenset[str], rarity: Mapping[str, float]) -> float:
    """Returns the probability that `new` corrects `old`, both with `shared` words."""
    near = _LEAST_NEAR if new.vector is None or old.vector is None else float(new.vector @ old.vector)
    if near < _LEAST_NEAR:
        return 0.0
    rare = max((rarity[word] for word in shared), default=0.0)
    return logistic(NEAR * near + RARE * rare + ASKED * old.evidence + INTERCEPT)


def _is_later(new: Dated, old: Dated) -> bool:
    if new.moment is not None and old.moment is not None and new.moment != old.moment:
        return new.moment > old.moment
    if new.intake == old.intake and new.series is not None and old.series is not None:
        return new.series[0] == old.series[0] and new.series[1] > old.series[1]
    return new.intake > old.intake
