"""Tells which sentences a later passage corrects: both name one thing in one place, and say otherwise of it. Pure."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from app.foundation.models.protocols import Vector
from app.foundation.text.prose import SENTENCE_END
from app.foundation.text.words import content_words

ERRATUM = re.compile(r"(?i)\b(?:correct(?:ion|ed)|errat(?:um|a)|corrigendum)\b")
"""A word in the title of a file that gives right figures in place of wrong ones."""
_CHANGED = re.compile(
    r"(?i)\b(?:correct(?:ion|ed)|errat(?:um|a)|corrigendum|reopened|(?:is|are|allowed|usable|used|rated|open|wrong|"
    r"broken|happens?|occurs?|seen|cited|trusted) (?:\w+ )?again|(?:is|are) (?:back|gone)|(?:no|any) longer|"
    r"do not use|don['’]t use|must not|until further notice|newly|from now on|moves? (?:up|down) to|"
    r"(?:right|real|actual|true) (?:number|figure|value|count)|revised|supersede[sd]?|replaces|withdrawn|retracted|"
    r"rescinded|overturned|reversed|revoked|outdated|void|narrows to|raised to|lowered to|off the table|lifted|"
    r"suspended|refuted|disproved|turned out|mistaken|(?:is|are|was|were) (?:wrong|over|not (?:the|what|due|caused)))\b"
)
"""Words by which a sentence says that what was true before is not true any more."""
_FAILS = re.compile(
    r"(?i)\b(?:reopened|(?:is|are) back|(?:wrong|broken|open|happens?|occurs?|seen) (?:\w+ )?again|penali[sz]ed|"
    r"do not use|don['’]t use|must not|not (?:be )?(?:allowed|used|cited)|avoid|stuck|wrong|stays? out|no better|"
    r"hearsay|suspended|no longer|any longer|broken|fail(?:s|ed)?|unreliable|off the table|paused?|on hold|banned|"
    r"refuted|disproved|rejected|withdrawn|retracted)\b"
)
_HOLDS = re.compile(
    r"(?i)\b(?:fixed|resolved|closed|solved|done|fine|good|works?|usable|allowed|accepted|trusted|use|cited|passes|"
    r"gone|lifted|in force|reliable)\b"
)
"""Words of the two states in which a thing may be: it does not hold, or it does."""
_REOPENS = re.compile(r"(?i)\b(?:reopened|(?:is|are) back|again)\b")
_CLOSES = re.compile(r"(?i)\b(?:fixed|resolved|closed|solved|mended|any ?more|no longer)\b")
"""Words by which a point is opened again, and by which it was closed."""
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_GRADE = re.compile(r"\b(?:Critical|High|Medium|Moderate|Low|P[0-4])\b")
_FIGURE = re.compile(r"(?<![\w.-])(\d+(?:,\d{3})*(?:\.\d+)?)\s*(%|[^\W\d_]{2,})?")
"""A number with the word after it."""
_DATE = re.compile(
    rf"(?i)\b(?:{_MONTH})\.? \d{{1,2}}\b|\b\d{{1,2}}\.? (?:{_MONTH})\b|\b\d{{1,2}}:\d\d\b|\b(?:19|20)\d\d\b[-\d]*"
)
"""Dates and times, which are no figures."""
_TIME = re.compile(r"(?i)(?:second|minute|hour|day|week|month|year)s?|ms|min|h|s")
_UNIT = 5
"""Characters of a unit that are compared: `hour` and `hours` are one."""
_FROM_TO = 2
"""Most numbers without a unit of a sentence that names the old figure beside the new one."""
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,2}[.)]|\|)\s")
"""The beginning of an item or a row: the heading above names the list, and not the item."""
_NAME = re.compile(
    rf"(?<=[\w,;] )(?!(?i:{_MONTH}|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b)[A-Z]\w+|\b[A-Z][A-Z\d]+\b"
)
"""A capitalised word that begins no sentence, or an acronym."""
_LIMITED = re.compile(r"(?i)\bdo(?: not|n['’]t) use [^.;:\n]{1,80}? for (?!now\b|the (?:moment|time|present)\b|any\b)")
"""A ban for one purpose, which leaves the others."""
_PART = re.compile(r"(?i)\b(?:its|their|whose) ([^\W\d_]{2,40})")
"""The part of a thing to which a figure belongs."""
_SENTENCE = re.compile(rf"[^\n]+?(?=\n|$|{SENTENCE_END.pattern})", re.MULTILINE)

COMPARED = 40
"""The number of best passages that are compared with one another."""
_LEAST_NEAR = 0.35
"""Least cosine similarity of a correction and what it corrects."""
_NAMED, _REOPENED = 1.0, 0.5
"""Least weight of the words that both sentences share, in words that no other passage has: to speak of the same thing,
and of a point that was closed and is open again. On the three trees of flows-dev the figures are the same from 0.7 to
1.0 and to 2.5."""


class Dated(NamedTuple):
    """A passage with what tells whether it corrects another, or is corrected."""

    text: str
    heading: str
    """The heading above it, which names what it is about."""
    vector: Vector | None
    source: Hashable
    """Passages of one source do not correct each other."""
    line: str
    """The case or the folder of its source: what stands elsewhere, or in none, does not correct it."""
    evidence: float
    """Its evidence for the query."""
    moment: float | None
    """The moment that its report names, in seconds; None if it names none."""
    is_erratum: bool = False
    """True if its file calls itself a correction: then another figure in it needs no sign beside it."""
    series: tuple[str, tuple[int, ...]] | None = None
    """The case and the version that its place in the store names."""
    intake: int = 0
    """The number of the intake that stored it."""


class Correction(NamedTuple):
    """A passage that corrects another, if it is the later one; by the places of both."""

    old: int
    new: int
    spans: tuple[tuple[int, int], ...]
    """The characters of the sentences that do not hold any more; without any, the earlier passage is only doubtful."""
    evidence: float
    """The later one's evidence for the query."""


class _Claim(NamedTuple):
    """A sentence with what it says of which thing."""

    span: tuple[int, int]
    words: frozenset[str]
    figures: frozenset[tuple[str, str]]
    """Its numbers with their units, and its grades."""
    names: frozenset[str]
    parts: frozenset[str]
    """The parts of its thing that its figures may be of."""
    changed: bool
    reopens: bool
    closes: bool
    state: int
    """1 if it says that a thing holds, -1 if it does not, 0 if it says neither."""


@lru_cache(maxsize=4_096)
def _claims(text: str) -> Sequence[_Claim]:
    """Returns the claims of a text; a sentence that says nothing of a state has that of the next one."""
    found = [_claim(match) for match in _SENTENCE.finditer(text)]
    following = [*(item.state for item in found[1:]), 0]
    return [item._replace(state=item.state or state) for item, state in zip(found, following, strict=False)]


def _claim(match: re.Match[str]) -> _Claim:
    text = match.group()
    figures = {(value.replace(",", ""), _unit(unit)) for value, unit in _FIGURE.findall(_DATE.sub(" ", text))}
    grades = {(grade.lower(), "grade") for grade in _GRADE.findall(text)}
    return _Claim(
        span=match.span(),
        words=content_words(_CHANGED.sub(" ", text)),
        figures=frozenset(figures | grades),
        names=frozenset(_NAME.findall(_GRADE.sub(" ", text))),
        parts=content_words(" ".join(_PART.findall(text))),
        changed=_CHANGED.search(text) is not None,
        reopens=_REOPENS.search(text) is not None,
        closes=_CLOSES.search(text) is not None,
        state=_state(text),
    )


def _state(text: str) -> int:
    if _LIMITED.search(text):
        return 0
    return -1 if _FAILS.search(text) else int(_HOLDS.search(text) is not None)


def _unit(word: str) -> str:
    return "time" if _TIME.fullmatch(word) else word[:_UNIT].lower()


_content_words = lru_cache(maxsize=4_096)(content_words)


def likely_corrections(items: Sequence[Dated]) -> list[Correction]:
    """Returns the pairs of passages of which one corrects the other, if it is the later one.

    A sentence of the later one says that something has changed, both name the same thing, and both stand in one case or
    folder. Where both give another figure or the opposite state, the earlier sentence does not hold any more; else it
    is doubtful. The order of time does not count yet, because the moments of intakes take a statement.
    """
    saying = [place for place, item in enumerate(items) if item.is_erratum or _CHANGED.search(item.text)]
    pairs = [
        (old, new)
        for new in saying
        for old, before in enumerate(items)
        if before.source != items[new].source and before.line == items[new].line != ""
    ]
    if not pairs:
        return []
    rarity = _rarity([_content_words(item.text) | _content_words(item.heading) for item in items])
    found = (_correction_of(old, new, items, rarity) for old, new in pairs)
    return [item for item in found if item is not None]


def _correction_of(old: int, new: int, items: Sequence[Dated], rarity: Mapping[str, float]) -> Correction | None:
    before, after = items[old], items[new]
    if before.vector is not None and after.vector is not None and before.vector @ after.vector < _LEAST_NEAR:
        return None
    own = frozenset[str]() if _ITEM.match(before.text) else _content_words(before.heading)
    wrong: list[tuple[int, int]] = []
    is_doubtful = False
    for said in _claims(before.text):
        for claim in _claims(after.text):
            shared = claim.words & (said.words | own)
            weight = sum(rarity[word] for word in shared)
            is_named = len(shared) > 1 and weight >= _NAMED
            is_reopened = claim.reopens and said.closes and weight >= _REOPENED
            is_other = claim.names - said.names and said.names - claim.names
            is_wrong = is_reopened or (is_named and _contradicts(claim, said, own, is_erratum=after.is_erratum))
            if is_wrong and not is_other:
                wrong.append(said.span)
            is_doubtful |= is_named and claim.changed
    spans = tuple((start, _end(before.text, start, end)) for start, end in wrong)
    return Correction(old, new, spans, after.evidence) if wrong or is_doubtful else None


def _end(text: str, start: int, end: int) -> int:
    """Returns the end of what goes with a sentence: the whole item that it begins, because the rest speaks of it."""
    if not _ITEM.match(text, start) or text[max(0, start - 1) : start] not in {"", "\n"}:
        return end
    return len(text) if (line := text.find("\n", start)) < 0 else line


def _contradicts(claim: _Claim, said: _Claim, own: frozenset[str], *, is_erratum: bool) -> bool:
    """Tells if two sentences give one thing, or one part of it, another figure, or the thing the opposite state."""
    has_figure = claim.parts <= said.words | own and _differ(claim.figures, said.figures)
    if not claim.changed:
        return is_erratum and has_figure
    return claim.state * said.state < 0 or has_figure


def _differ(new: frozenset[tuple[str, str]], old: frozenset[tuple[str, str]]) -> bool:
    """Tells if the later sentence has another number of a unit of the earlier one; without units, of its only one."""
    units = {unit for _, unit in old} - ({""} if _bare(old) != 1 or _bare(new) > _FROM_TO else set())
    return any(unit in units for _, unit in new - old)


def _bare(figures: frozenset[tuple[str, str]]) -> int:
    return sum(not unit for _, unit in figures)


def outdated_places(items: Sequence[Dated], likely: Sequence[Correction]) -> dict[int, Correction]:
    """Returns the places of passages that later ones correct, each with all wrong sentences and the best correction.

    Dates and intakes are two orders, by which corrections may go round in a circle: those of a circle do not count.
    """
    later = sorted(item for item in likely if _is_later(items[item.new], items[item.old]))
    newer: dict[int, set[int]] = defaultdict(set)
    for item in later:
        newer[item.old].add(item.new)
    straight = [item for item in later if not _leads(item.new, item.old, newer)]
    found: dict[int, Correction] = {}
    for old, group in groupby(straight, key=lambda item: item.old):
        its = list(group)
        best = max(its, key=lambda item: (bool(item.spans), item.evidence))
        found[old] = best._replace(spans=tuple(sorted({span for item in its for span in item.spans})))
    return found


def _leads(start: int, end: int, newer: Mapping[int, set[int]]) -> bool:
    """Tells if one passage is corrected by another, over others too."""
    seen, ahead = {start}, [start]
    while ahead:
        following = newer.get(ahead.pop(), set()) - seen
        seen |= following
        ahead += following
    return end in seen


def left_of(start: int, end: int, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yields the parts of a passage that are left without these spans, which count from its start."""
    at = start
    for first, last in spans:
        yield at, max(at, start + first)
        at = max(at, start + last)
    yield at, end


def _rarity(texts: Sequence[frozenset[str]]) -> dict[str, float]:
    """Returns the inverse document frequency of each word, 1 for a word of one text; few texts count as many."""
    counts = Counter(word for words in texts for word in words)
    total = max(len(texts), COMPARED)
    return {word: _idf(count, total) / _idf(1, total) for word, count in counts.items()}


def _idf(count: int, total: int) -> float:
    return math.log(1 + (total - count + 0.5) / (count + 0.5))


def _is_later(new: Dated, old: Dated) -> bool:
    if new.moment is not None and old.moment is not None and new.moment != old.moment:
        return new.moment > old.moment
    if new.intake == old.intake and new.series is not None and old.series is not None:
        return new.series[0] == old.series[0] and new.series[1] > old.series[1]
    return new.intake > old.intake
