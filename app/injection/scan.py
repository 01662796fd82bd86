"""The scan: every view of a text against the rules, each finding at its place in the text as it was given."""

import re
from collections.abc import Iterator, Sequence

from app.injection.context import Span, discussed, merged, quoted_as_data, unseen, within
from app.injection.encoded import decoded
from app.injection.finding import BLOCK, EXCERPT_CHARACTERS, FLAG, Finding
from app.injection.normal import Normal, joined, normal
from app.injection.rules import COMPACT, HIDDEN, Rule, book

FEWEST_HIDDEN = 3
"""Invisible characters between letters from which on they are marked: fewer come with copied text."""
FEWEST_TAG_LETTERS = 4
MARKS = re.compile(r"<!--|\]\(|\]:|<\w|`|~~~|^\s*>", re.MULTILINE)


def scan(text: str) -> tuple[Finding, ...]:
    """What instructs the reader, in the order of its place. Linear in the text's length.

    What stands in a closed code block, inline code or a block quote is quoted as data, and what stands in quotation
    marks after words that discuss it is an example: both are FLAG, everything else is what its rule says.
    """
    read = normal(text)
    found = [*_plain(read), *_spaced(read), *_unseen(read), *_encoded(read), *_invisible(text, read)]
    if not found:
        return ()
    places = {finding: finding for finding in (_placed(item, read, text) for item in found)}
    return tuple(sorted(places, key=lambda item: (item.start, item.end, item.rule)))


def blocking(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Those that keep the text out."""
    return tuple(finding for finding in findings if finding.severity == BLOCK)


def _plain(read: Normal) -> Iterator[Finding]:
    matches = list(book(BLOCK).matches(read.text))
    if not matches:
        return
    data = _as_data(read.text)
    for rule, start, end in matches:
        first = start + _blank(read.text[start:end])
        yield _finding(rule, first, end, FLAG if within(data, first, end) else rule.severity)


def _blank(match: str) -> int:
    """A rule's lead begins at the mark or blank before the word; the finding begins at the word."""
    return len(match) - len(match.lstrip(" \t\r\n.!?;:,\"'`“”«»([{<>*#|_~=–—-"))


def _as_data(text: str) -> list[Span]:
    return merged([*quoted_as_data(text), *discussed(text)])


def _spaced(read: Normal) -> Iterator[Finding]:
    for word, start, end in joined(read.text):
        for rule, _, _ in book(COMPACT).matches(word):
            yield _finding(rule, start, end, BLOCK)
    apart = _rejoined(read.text)
    if apart is not None and any(True for _ in book(BLOCK).matches(apart)):
        (rule, _, _), *_ = book(BLOCK).matches(apart)
        runs = joined(read.text)
        yield _finding(rule, runs[0][1], runs[-1][2], BLOCK)


def _rejoined(text: str) -> str | None:
    """The text with its spaced words as words; None where there are none."""
    runs = joined(text)
    if not runs:
        return None
    pieces: list[str] = []
    last = 0
    for word, start, end in runs:
        pieces += [text[last:start], word]
        last = end
    return "".join([*pieces, text[last:]])


def _unseen(read: Normal) -> Iterator[Finding]:
    if not MARKS.search(read.text):
        return
    code = quoted_as_data(read.text)
    for content, start, end in unseen(read.text):
        for rule, _, _ in (*book(HIDDEN).matches(content), *book(BLOCK).matches(content)):
            yield Finding(
                rule=rule.name,
                family=HIDDEN,
                severity=FLAG if within(code, start, end) else BLOCK,
                start=start,
                end=end,
                excerpt="",
            )
            break


def _encoded(read: Normal) -> Iterator[Finding]:
    for content, start, end in decoded(read.text):
        for rule, _, _ in (*book(BLOCK).matches(content), *book(HIDDEN).matches(content)):
            yield _finding(rule, start, end, BLOCK)
            break


def _invisible(text: str, read: Normal) -> Iterator[Finding]:
    """Characters that nobody sees, between letters or spelling a text of their own."""
    if len(read.tags) >= FEWEST_TAG_LETTERS and read.tags.isprintable():
        yield Finding(
            rule="hidden-tags", family=HIDDEN, severity=BLOCK, start=0, end=len(read.text), excerpt=read.tags[:80]
        )
    elif read.hidden >= FEWEST_HIDDEN:
        yield Finding(rule="hidden-characters", family=HIDDEN, severity=FLAG, start=0, end=len(text), excerpt="")


def _finding(rule: Rule, start: int, end: int, severity: str) -> Finding:
    return Finding(rule=rule.name, family=rule.family, severity=severity, start=start, end=end, excerpt="")


def _placed(finding: Finding, read: Normal, text: str) -> Finding:
    """The same at its place in the text as it was given."""
    start = read.place(finding.start, len(text))
    end = max(start + 1, read.place(max(finding.end - 1, 0), len(text)) + 1) if finding.end else start
    end = min(end, len(text))
    return Finding(
        rule=finding.rule,
        family=finding.family,
        severity=finding.severity,
        start=min(start, end),
        end=end,
        excerpt=finding.excerpt or text[start:end][:EXCERPT_CHARACTERS],
    )
