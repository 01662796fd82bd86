"""The scan: every reading of a text against the rules, each finding at its place in the text as it was given."""

import collections
import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from app.safety.context import Span, discussed, merged, quoted_as_data, unseen, within
from app.safety.normal import Pieces, View, hidden, normal, pieces
from app.safety.readings import decoded, figured, joined, without_marks
from app.safety.rules import ADDRESSED, COMPACT, HIDDEN, Match, book

BLOCK, FLAG = "block", "flag"
EXCERPT_CHARACTERS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An instruction to the reader, or what hides one."""

    rule: str
    family: str
    """`override`, `role`, `jailbreak`, `exfiltration`, `tool`, `persistence` or `hidden`."""
    severity: str
    """BLOCK keeps the text out; FLAG marks what is quoted or discussed."""
    start: int
    end: int
    """Its place in the text as it was given, in characters."""
    excerpt: str


REPEATED_CHARACTERS = 200
"""Texts as short come again and again: tags, keys, headings. Of the report files' chunks 9 of 10 texts are such."""
FEWEST_HIDDEN = 3
"""Invisible characters between letters from which on they are marked: fewer come with copied text."""
MOST_OF_A_RULE = 20
"""Findings of one rule and severity in one text: what repeats itself a thousand times is news once."""
TAGS = re.compile(r"[\U000e0020-\U000e007e]{4,}|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}")
"""Characters that nobody sees and that spell a text of their own."""
FLAGS = re.compile(
    "\U0001f3f4\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074"
    "|\U000e0077\U000e006c\U000e0073)\U000e007f"
)
"""Of England, Scotland and Wales: all the emoji that are made of such characters."""
TAG_START, TAG_END = 0xE0000, 0xE0080
LEAD = re.compile(r"[\s.!?;:,\"'`“”«»(\[{<>*#|_~=–—)\]-]*")


class Page:
    """A text under the scan."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.read = normal(text)

    @functools.cached_property
    def bare(self) -> View | None:
        """Its reading without Markdown and HTML; None where it has none."""
        return without_marks(self.read.text)

    @functools.cached_property
    def code(self) -> list[Span]:
        """Where its reading is quoted as data."""
        return quoted_as_data(self.read.text)

    @functools.cached_property
    def data(self) -> list[Span]:
        """Where its reading is quoted or discussed."""
        return merged([*self.code, *discussed(self.read.text)])

    def finding(self, match: Match, span: Span, *, family: str = "") -> Finding:
        """What a rule found at a place of the reading. Nobody discusses what nobody sees."""
        quoted = within(self.code if family == HIDDEN else self.data, *span) and not match.excess
        start, end = self.read.span(*span)
        return Finding(
            rule=match.rule.name,
            family=family or match.rule.family,
            severity=FLAG if quoted else BLOCK,
            start=start,
            end=min(end, len(self.text)),
            excerpt=self.text[start:end][:EXCERPT_CHARACTERS],
        )


def scan(text: str) -> tuple[Finding, ...]:
    """What instructs the reader, in the order of its place. Linear in the text's length.

    What stands in a closed code block, inline code or a block quote is quoted as data, and what stands in quotation
    marks after words that discuss it is an example: both are FLAG, everything else is BLOCK.
    """
    return _scanned_again(text) if len(text) <= REPEATED_CHARACTERS else _scanned(text)


@functools.lru_cache(maxsize=4096)
def _scanned_again(text: str) -> tuple[Finding, ...]:
    return _scanned(text)


def _scanned(text: str) -> tuple[Finding, ...]:
    page = Page(text)
    found = [*_said(page), *_spaced(page), *_figured(page), *_unseen(page), *_encoded(page), *_invisible(text)]
    return tuple(_told_apart(sorted(found, key=lambda item: (item.start, item.end, item.rule)))) if found else ()


def blocking(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Those that keep the text out."""
    return tuple(finding for finding in findings if finding.severity == BLOCK)


def _said(page: Page) -> Iterator[Finding]:
    """As it stands, and without its Markdown and HTML."""
    yield from _matched(page, View(page.read.text))
    if page.bare is not None:
        yield from _matched(page, page.bare)


def _matched(page: Page, view: View, severities: Iterable[str] = (BLOCK,)) -> Iterator[Finding]:
    """The rules' matches in another view of the page's reading."""
    for severity in severities:
        for match in book(severity).matches(view.text):
            yield page.finding(match, view.span(*_words(match, view.text)))


def _words(match: Match, text: str) -> Span:
    """A rule's lead begins at the mark or blank before the word; the finding begins at the word."""
    return match.start + len(LEAD.match(text, match.start, match.end)[0]), match.end  # type: ignore[index]


def _spaced(page: Page) -> Iterator[Finding]:
    """Letters that stand apart, read as words; what was found without that is found again, at the same place."""
    apart = joined(page.read.text)
    if apart is not None:
        yield from _matched(page, apart, (COMPACT, BLOCK))


def _figured(page: Page) -> Iterator[Finding]:
    """Figures read as the letters that they stand for; what has none of them is found again, at the same place."""
    base = page.bare or View(page.read.text)
    spelled = figured(base.text)
    if spelled is None:
        return
    for match in book(BLOCK).matches(spelled.text):
        yield page.finding(match, base.span(*spelled.span(*_words(match, spelled.text))))


def _unseen(page: Page) -> Iterator[Finding]:
    """What describes a picture or a link is held to less than what nobody sees at all."""
    places = list(unseen(page.read.text))
    titles = pieces((place.text, (place.start, place.end)) for place in places if place.title)
    others = pieces((place.text, (place.start, place.end)) for place in places if not place.title)
    yield from _within(page, titles, (ADDRESSED, BLOCK), family=HIDDEN)
    yield from _within(page, others, (HIDDEN, ADDRESSED, BLOCK), family=HIDDEN)


def _encoded(page: Page) -> Iterator[Finding]:
    yield from _within(page, decoded(page.read.text), (BLOCK, HIDDEN, ADDRESSED))


def _within(page: Page, found: Pieces | None, severities: Iterable[str], *, family: str = "") -> Iterator[Finding]:
    """The rules' matches in texts from other places, with and without their marks."""
    if found is None:
        return
    read = normal(found.text)
    bare = without_marks(read.text)
    for severity in severities:
        for match in book(severity).matches(read.text):
            yield page.finding(match, found.span(read.place(_words(match, read.text)[0])), family=family)
        if bare is not None:
            for match in book(severity).matches(bare.text):
                first = bare.place(_words(match, bare.text)[0])
                yield page.finding(match, found.span(read.place(first)), family=family)


def _invisible(text: str) -> Iterator[Finding]:
    """Characters that nobody sees, between letters or spelling a text of their own."""
    if text.isascii():
        return
    flags = {match.span() for match in FLAGS.finditer(text)}
    runs = [match for match in TAGS.finditer(text) if (match.start() - 1, match.end() + 1) not in flags]
    data = quoted_as_data(text.encode(errors="replace").decode()) if runs else []
    for run in runs:
        spelled = "".join(chr(ord(letter) - TAG_START) for letter in run[0] if ord(letter) < TAG_END)
        severity = FLAG if within(data, *run.span()) else BLOCK
        yield _of_characters("hidden-tags", severity, run.span(), spelled)
    if not runs and hidden(text) >= FEWEST_HIDDEN:
        yield _of_characters("hidden-characters", FLAG, (0, len(text)), text)


def _of_characters(rule: str, severity: str, span: Span, excerpt: str) -> Finding:
    return Finding(
        rule=rule,
        family=HIDDEN,
        severity=severity,
        start=span[0],
        end=span[1],
        excerpt=excerpt[:EXCERPT_CHARACTERS],
    )


def _told_apart(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Without those that lie over another of their rule and severity, and no more of each than are news."""
    ends: dict[tuple[str, str], int] = {}
    times: collections.Counter[tuple[str, str]] = collections.Counter()
    for finding in findings:
        kind = (finding.rule, finding.severity)
        if finding.start < ends.get(kind, 0) or times[kind] == MOST_OF_A_RULE:
            continue
        ends[kind] = finding.end
        times[kind] += 1
        yield finding
