"""Splits a memory's text into passages: paragraphs, list items, rows of tables and values of JSON. Pure.

A passage is the unit that an answer shows: the best passages within 400 tokens hold 0.79 of the needed evidence of a
report tree, whole chunks within 500 tokens hold 0.61 (benchmarks/retrieval.md).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple

from app.foundation.text.pieces import lines_of, says_something
from app.foundation.text.prose import SENTENCE_END, MarkdownBlock, blocks
from app.foundation.text.scores import DATE_LINE, written_moment

LONG, GROUP = 600, 400
"""Characters from which a paragraph or an item is split at sentences, and of the groups of sentences that it becomes.
Groups of 25 words cost 0.06 of the needed evidence of the report trees; those of 60 words cost none."""
_SHORT_ITEM, _SHORT_LIST = 110, 500
"""A list of items that are all this short, in characters, is one passage up to the second limit, and so is a table up
to that limit: its rows are read together."""
_LEAD_WORDS = 12
"""Most words of a paragraph that only introduces what follows: it ends with a colon, or is all emphasis."""
_LEAD = re.compile(r"(?s)\s*(?:(?P<mark>\*\*|__).+(?P=mark)[:：]?|.+[:：][*_]*)\s*")
KEY = re.compile(r"[^\W\d][\w .-]{0,40}:(?:\s|$)")
"""The beginning of a line that is a value of a JSON object."""
VALUES, _TEXT_WORDS = 4, 8
"""Values of an object that is split, at least, and words of a value that is a text of its own."""
_REMEMBERED = 2_048
"""Texts whose passages are remembered: those that are hits again and again. Parsing one takes 0.1 ms."""
MOST_PASSAGES = 32
"""Passages of a memory at most; the last one has the rest of the text."""


class Passage(NamedTuple):
    """A range of a text, with the range of the line that introduces it."""

    start: int
    end: int
    head: tuple[int, int] | None = None
    """A heading within the text, the lead-in of a list, or the header of a table; None without one."""

    def of(self, text: str) -> str:
        """Returns the passage below its introduction."""
        return f"{self.head_of(text)}{text[self.start : self.end]}"

    def head_of(self, text: str) -> str:
        """Returns the introduction with a line break; empty without one."""
        return f"{text[slice(*self.head)].rstrip()}\n" if self.head else ""


@lru_cache(maxsize=_REMEMBERED)
def passages_of(text: str) -> Sequence[Passage]:
    """Returns the passages of a text in their order: at least one for a text that says something."""
    lines = lines_of(text)
    offsets = list(accumulate(map(len, lines), initial=0))
    found = [
        Passage(start, end, head)
        for at, to, head in _with_leads(blocks(text), text, offsets)
        for start, end in _trim_range(text, at, to)
    ]
    if not found and says_something(text):
        found = [Passage(len(text) - len(text.lstrip("\n")), len(text.rstrip()))]
    if len(found) > MOST_PASSAGES:
        last = found[MOST_PASSAGES - 1]
        found = [*found[: MOST_PASSAGES - 1], last._replace(end=len(text.rstrip()))]
    return tuple(found)


_Range = tuple[int, int]


def _with_leads(
    found: Iterable[MarkdownBlock], text: str, offsets: Sequence[int]
) -> Iterator[tuple[int, int, _Range | None]]:
    """Yields the ranges of blocks, each with that of its introduction.

    A heading introduces all up to the next one; a paragraph only what follows it, up to the next paragraph. One that
    introduces nothing is a block itself.
    """
    heading: _Range | None = None
    head: _Range | None = None
    used = True
    for block in found:
        at, to = offsets[block.first], offsets[block.last]
        if block.kind == "heading" or (block.kind == "paragraph" and _introduces(text[at:to])):
            if head is not None and not used:
                yield *head, None
            head, used = (at, to), False
            heading = head if block.kind == "heading" else heading
            continue
        if block.kind == "paragraph" and used:
            head = heading
        used = True
        yield from ((start, end, own or head) for start, end, own in _parts(block, text, offsets))
    if head is not None and not used:
        yield *head, None


def _introduces(paragraph: str) -> bool:
    return len(paragraph.split()) <= _LEAD_WORDS and _LEAD.fullmatch(paragraph) is not None


def _parts(block: MarkdownBlock, text: str, offsets: Sequence[int]) -> Iterator[tuple[int, int, _Range | None]]:
    """Yields the parts of a block: items, rows with their header, sentences of a long paragraph."""
    first, last = block.first, block.last
    at, to = offsets[first], offsets[last]
    if block.kind == "table" and to - at > _SHORT_LIST:
        rows = ((offsets[line], offsets[line + 1]) for line in range(first + 2, last))
        yield from ((*row, (at, offsets[first + 2])) for row in rows)
    elif block.kind == "list":
        items = [(offsets[start], offsets[end]) for start, end in block.items]
        if to - at <= _SHORT_LIST and all(end - start <= _SHORT_ITEM for start, end in items):
            items = [(at, to)]
        yield from ((*part, None) for start, end in items for part in _split(text, start, end))
    elif block.kind == "paragraph":
        parts = _values(text, offsets[first : last + 1]) or [(at, to)]
        yield from ((*part, None) for start, end in parts for part in _split(text, start, end))
    else:
        yield at, to, None


def _values(text: str, offsets: Sequence[int]) -> list[_Range]:
    """Returns the values of a JSON object, each in a line: texts one by one, those between them together.

    Returns nothing for other paragraphs, and for an object of few values, which is one statement.
    """
    lines = list(pairwise(offsets))
    if len(lines) < VALUES or not all(KEY.match(text, start, end) for start, end in lines):
        return []
    found: list[_Range] = []
    joins = False
    for start, end in lines:
        is_text = len(text[start:end].split()) >= _TEXT_WORDS
        if joins and not is_text:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
        joins = not is_text
    return found


def _split(text: str, at: int, to: int) -> Iterator[_Range]:
    """Yields a range, or groups of its sentences if it is long."""
    if to - at <= LONG:
        yield at, to
        return
    ends = [match.end() for match in SENTENCE_END.finditer(text, at, to)]
    start = at
    for end, following in pairwise([*ends, to, to]):
        if end == to or following - start > GROUP:
            yield start, end
            start = end
            if end == to:
                return


def _trim_range(text: str, at: int, to: int) -> Iterator[_Range]:
    """Yields a range without the blank space around it; yields nothing if it says nothing, or only a date."""
    part = text[at:to]
    if says_something(part) and not _is_date(part):
        # The indent of an item's first line is part of its markup.
        start = at + len(part) - len(part.lstrip("\n"))
        yield start, at + len(part.rstrip())


def _is_date(part: str) -> bool:
    dated = DATE_LINE.fullmatch(part.strip())
    return dated is not None and written_moment(dated["value"]) is not None
