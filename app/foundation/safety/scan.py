"""The injection scan: searches every reading of a text for the rules, and places each finding in the original. Pure."""

import collections
import functools
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from app.foundation.safety import readings
from app.foundation.safety.evidence import SuspectSentence, evidence, weights
from app.foundation.safety.rules import (
    ADDRESSED,
    COMPACT,
    HIDDEN,
    Match,
    NormalView,
    Pieces,
    Span,
    book,
    count_invisible,
    fold,
    normal,
)

BLOCK, SUSPECT, FLAG = "block", "suspect", "flag"
WEAK_SIGNS = "weak-signs"
"""Name of the rule that adds up weak signs."""


class Finding(NamedTuple):
    """An instruction to the reader, or characters that hide one."""

    rule: str
    family: str
    """`override`, `role`, `jailbreak`, `exfiltration`, `tool`, `evaluator`, `persistence`, `hidden` or `indirect`."""
    severity: str
    """BLOCK refuses the text, SUSPECT keeps it out of histories, FLAG marks what is quoted or discussed."""
    start: int
    end: int
    """Place in the given text, in characters."""


REPEATED_CHARACTERS = 200
"""Length up to which a text's findings are cached: 9 of 10 chunks of report files are this short, and many recur."""
MOST_KNOWN = 4_096
"""Short texts whose findings are cached."""
_FEWEST_HIDDEN = 3
"""Runs of invisible characters between letters that make a finding; copied text has one or two."""
_MOST_OF_A_RULE = 20
"""Findings of one rule and severity in one text; more are left out."""
_TAGS = re.compile(r"[\U000e0020-\U000e007e]{4,}|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}")
"""Invisible characters that spell a text of their own."""
_FLAGS = re.compile(
    "\U0001f3f4\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074"
    "|\U000e0077\U000e006c\U000e0073)\U000e007f"
)
"""The flags of England, Scotland and Wales: the only emoji that contain such characters."""
_LEAD = re.compile(r"[\s.!?;:,\"'`“”«»(\[{<>*#|_~=–—)\]-]*")


class ScannedText:
    """A text under the scan, with its normalised reading."""

    def __init__(self, text: str, start: int = 0) -> None:
        self.text, self.start = text, start
        self.read = normal(text)

    @functools.cached_property
    def bare(self) -> NormalView | None:
        """The reading without Markdown and HTML; None if it has none."""
        return readings.without_marks(self.read.text)

    @functools.cached_property
    def code(self) -> list[Span]:
        """The spans of the reading that are quoted as data."""
        return self._in_each_part(readings.quoted_as_data)

    @functools.cached_property
    def data(self) -> list[Span]:
        """The spans of the reading that are quoted or discussed."""
        return readings.merge_spans([*self.code, *self._in_each_part(readings.quotation_spans)])

    def _in_each_part(self, found: Callable[[str], list[Span]]) -> list[Span]:
        """Finds spans in the title and in what follows it: a quotation that a title opens does not go on after it."""
        seam = len(fold(self.text[: self.start]))
        later = found(self.read.text[seam:])
        return [*found(self.read.text[:seam]), *((start + seam, end + seam) for start, end in later)]

    def finding(self, match: Match, span: Span, *, family: str = "") -> Finding:
        """Makes a finding of a match at a span of the reading. Discussion does not excuse a hidden place."""
        quoted = readings.within(self.code if family == HIDDEN else self.data, *span) and not match.excess
        start, end = self.read.span(*span)
        return Finding(
            rule=match.rule.name,
            family=family or match.rule.family,
            severity=FLAG if quoted else BLOCK,
            start=start,
            end=min(end, len(self.text)),
        )


def load() -> None:
    """Compiles the rules and signs, which takes 0.4 s; otherwise the first text to scan waits for it."""
    for severity in (BLOCK, HIDDEN, ADDRESSED, COMPACT):
        book(severity)
    scan("The judge gave the report 7 of 10 points.")


def scan(text: str) -> tuple[Finding, ...]:
    """Finds instructions to the reader, in order of their place. Linear in the text's length.

    A span in a closed code block, inline code or a block quote is quoted as data; one in quotation marks after words
    that discuss it is an example. Both are FLAG, everything else is BLOCK.
    """
    return scan_all([(text, 0)])[0]


_known: dict[tuple[str, int], tuple[Finding, ...]] = {}
"""The findings of short texts, each with its `start`."""
_remembering = threading.Lock()


def scan_all(texts: Sequence[tuple[str, int]]) -> list[tuple[Finding, ...]]:
    """Scans many texts as `scan` does. Together, paragraphs take half the time.

    Each is given with the place where its title ends, which no quotation crosses.
    """
    found = {item: findings for item in texts if (findings := _known.get(item)) is not None}
    fresh = [item for item in dict.fromkeys(texts) if item not in found]
    found |= zip(fresh, _scan_texts(fresh), strict=True)
    _remember({item: found[item] for item in fresh if len(item[0]) <= REPEATED_CHARACTERS})
    return [found[item] for item in texts]


def _remember(short: Mapping[tuple[str, int], tuple[Finding, ...]]) -> None:
    """Keeps the findings of short texts, never more than MOST_KNOWN; other threads do so too."""
    with _remembering:
        if len(_known) + len(short) > MOST_KNOWN:
            _known.clear()
        _known.update(islice(short.items(), MOST_KNOWN))


def _scan_texts(texts: Sequence[tuple[str, int]]) -> list[tuple[Finding, ...]]:
    pages = [ScannedText(text, start) for text, start in texts]
    found = [_by_rules(page) for page in pages]
    doubtful = [place for place, items in enumerate(found) if not blocking(items)]
    for place, items in zip(doubtful, _by_weak_signs([pages[place] for place in doubtful]), strict=True):
        found[place] += items
    return [tuple(_distinct(sorted(items, key=lambda item: (item.start, item.end, item.rule)))) for items in found]


def _by_rules(page: ScannedText) -> list[Finding]:
    return [*_in_views(page), *_in_hidden_parts(page), *_in_encoded_data(page), *_of_invisible(page.text)]


def without_refusal(finding: Finding) -> Finding:
    """Returns a finding that refuses nothing: what it was found in is kept, and stands in no history."""
    return finding._replace(severity=SUSPECT) if finding.severity == BLOCK else finding


def _by_weak_signs(pages: Sequence[ScannedText]) -> list[list[Finding]]:
    """Finds sentences that no rule knows, by the sum of their signs."""
    found = evidence([page.read.text for page in pages], [functools.partial(getattr, page, "data") for page in pages])
    return [[_weak(page, item) for item in items] for page, items in zip(pages, found, strict=True)]


def _weak(page: ScannedText, item: SuspectSentence) -> Finding:
    start, end = page.read.span(*item.span)
    severity = BLOCK if item.score >= weights().block else SUSPECT
    return Finding(rule=WEAK_SIGNS, family="indirect", severity=severity, start=start, end=end)


def blocking(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Selects the findings that refuse the text."""
    return tuple(finding for finding in findings if finding.severity == BLOCK)


def _in_views(page: ScannedText) -> Iterator[Finding]:
    """Finds matches in the reading, and in it without markup, with joined letters, and with figures as letters."""
    plain = NormalView(page.read.text)
    yield from _matches_of_view(page, plain)
    if page.bare is not None:
        yield from _matches_of_view(page, page.bare)
    apart = readings.join_spaced_letters(plain.text)
    if apart is not None:
        yield from _matches_of_view(page, apart, (COMPACT, BLOCK))
    base = page.bare or plain
    spelled = readings.figures_as_letters(base.text)
    if spelled is not None:
        yield from _matches_of_view(page, spelled, base=base)


def _matches_of_view(
    page: ScannedText, view: NormalView, severities: Iterable[str] = (BLOCK,), *, base: NormalView | None = None
) -> Iterator[Finding]:
    """Finds matches in a view of the reading, or of its view `base`."""
    for match, span in _matches(view.text, severities):
        place = view.span(*span)
        yield page.finding(match, base.span(*place) if base else place)


def _matches(text: str, severities: Iterable[str]) -> Iterator[tuple[Match, Span]]:
    """Yields matches with the span of their words: a rule's pattern also covers the blank or mark before them."""
    for severity in severities:
        for match in book(severity).matches(text):
            lead = _LEAD.match(text, match.start, match.end)
            yield match, (match.start + len(lead[0] if lead else ""), match.end)


def _in_hidden_parts(page: ScannedText) -> Iterator[Finding]:
    """Finds matches in titles, and in hidden parts, for which there are more rules."""
    yield from _in_pieces(page, readings.titles(page.read.text), (ADDRESSED, BLOCK), family=HIDDEN)
    hidden = readings.hidden_parts(page.read.text)
    yield from _in_pieces(page, hidden, (HIDDEN, ADDRESSED, BLOCK), family=HIDDEN)


def _in_encoded_data(page: ScannedText) -> Iterator[Finding]:
    yield from _in_pieces(page, readings.decode_runs(page.read.text), (BLOCK, HIDDEN, ADDRESSED))


def _in_pieces(
    page: ScannedText, found: Pieces | None, severities: Sequence[str], *, family: str = ""
) -> Iterator[Finding]:
    """Finds matches in extracted texts, with and without their markup."""
    if found is None:
        return
    read = normal(found.text)
    for view in filter(None, (NormalView(read.text), readings.without_marks(read.text))):
        for match, (start, _) in _matches(view.text, severities):
            yield page.finding(match, found.span(read.position(view.position(start))), family=family)


def _of_invisible(text: str) -> Iterator[Finding]:
    """Finds invisible characters that stand between letters or spell a text of their own."""
    if text.isascii():
        return
    flags = {match.span() for match in _FLAGS.finditer(text)}
    runs = [match for match in _TAGS.finditer(text) if (match.start() - 1, match.end() + 1) not in flags]
    data = readings.quoted_as_data(text.encode(errors="replace").decode()) if runs else []
    for run in runs:
        severity = FLAG if readings.within(data, *run.span()) else BLOCK
        yield Finding(rule="hidden-tags", family=HIDDEN, severity=severity, start=run.start(), end=run.end())
    if not runs and count_invisible(text) >= _FEWEST_HIDDEN:
        yield Finding(rule="hidden-characters", family=HIDDEN, severity=FLAG, start=0, end=len(text))


def _distinct(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Drops findings that overlap an earlier one of their rule and severity, and those beyond _MOST_OF_A_RULE."""
    ends: dict[tuple[str, str], int] = {}
    times: collections.Counter[tuple[str, str]] = collections.Counter()
    for finding in findings:
        kind = (finding.rule, finding.severity)
        if finding.start < ends.get(kind, 0) or times[kind] == _MOST_OF_A_RULE:
            continue
        ends[kind] = finding.end
        times[kind] += 1
        yield finding
