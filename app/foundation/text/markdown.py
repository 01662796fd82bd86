"""The grammar of Markdown: a reader of blocks for what is stored, and one of lines, which is quick. Pure."""

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

_PARSER = MarkdownIt("commonmark").enable("table").disable(["inline", "text_join"])
"""Parses blocks only: nobody needs inline markup from it, and parsing it would double the time."""
_PLAIN = re.compile(r"[^\W\d_][^\n\r]*")
"""A text of one line that begins with a letter is a paragraph. Parsing one takes 0.1 ms."""
LONGEST = 20_000
"""Characters that are read of one line; a longer line is no prose."""
FENCE = re.compile(r"^ {0,3}(?P<mark>`{3,}+(?!.*`)|~{3,}+)[ \t]*(?P<tag>\S*).*$", re.MULTILINE)
"""The first or last line of a fence."""
_PROSE_TAGS = frozenset({"md", "markdown", "mdx", "text", "txt", "plaintext"})
"""Tags of fences that hold no code."""
_DEEPEST_FENCE = 8
FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\n.{0,20000}?\n---[ \t]*(?:\n|\Z)", re.DOTALL)
HEADING = re.compile(r"^ {0,3}(?P<marks>#{1,6})[ \t]+(?P<text>.*)$", re.MULTILINE)
"""The line of a heading; its text may end with closing marks."""
ITEM = re.compile(r"^[ \t]*(?:[-*+•–]|\d{1,3}[.)])[ \t]+(?:\[(?P<done>[ xX])\][ \t]+)?", re.MULTILINE)
"""The mark before an item of a list."""
ROW = re.compile(r"^[ \t]*\|(.+)\|[ \t]*$", re.MULTILINE)
"""A row of a table with its cells."""
RULE = re.compile(r"^[\s|:+=_*-]+$")
QUOTE = re.compile(r"^\s*(?:>\s?)+")
_LINK = re.compile(r"!?\[([^\]\n]{0,300})\]\([^)\n]{0,2000}\)")
_EMPHASIS = re.compile(r"(\*\*|__|`+|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w))")


class MarkdownBlock(NamedTuple):
    """A block at the top level of a text."""

    kind: str
    """`heading`, `paragraph`, `list`, `table`, `fence`, or another name of the parser's."""
    first: int
    """The number of its first line, from 0."""
    last: int
    """The number of the line after it."""
    depth: int
    """The level of a heading, 1 to 6; 0 of another block."""
    heading: str
    items: Sequence[tuple[int, int]]
    """The first line of each item of a list, and the line after it."""


def blocks(text: str) -> Iterator[MarkdownBlock]:
    """Yields the blocks of a text in their order; lines between them define links, or are blank."""
    if _PLAIN.fullmatch(text):
        yield MarkdownBlock("paragraph", 0, 1, 0, "", ())
        return
    tokens = _PARSER.parse(text)
    for place, token in enumerate(tokens):
        if token.level or token.map is None:
            continue
        kind = token.type.removesuffix("_open").removeprefix("bullet_").removeprefix("ordered_")
        depth = int(token.tag[1]) if kind == "heading" else 0
        heading = " ".join(tokens[place + 1].content.split()) if depth else ""
        yield MarkdownBlock(kind, token.map[0], token.map[1], depth, heading, list(_items(tokens, place)))


def _items(tokens: Sequence[Token], place: int) -> Iterator[tuple[int, int]]:
    for token in itertools.takewhile(lambda token: token.level, itertools.islice(tokens, place + 1, None)):
        if token.type == "list_item_open" and token.level == 1 and token.map:
            yield token.map[0], token.map[1]


def plain(text: str) -> str:
    """Removes Markdown's emphasis and links, and joins white space."""
    return " ".join(_EMPHASIS.sub("", _LINK.sub(r"\1", text)).split())


def without_code(lines: Sequence[str]) -> list[str]:
    """Removes closed fences, unless they are tagged as prose or are the whole text."""
    hidden = bytearray(len(lines))
    filled = [place for place, line in enumerate(lines) if line.strip()]
    for start, end, tag in _fences(lines):
        is_all = (start, end) == (filled[0], filled[-1])
        if tag not in _PROSE_TAGS and not is_all:
            hidden[start:end] = b"\1" * (end - start)
    return [line for line, is_hidden in zip(lines, hidden, strict=True) if not is_hidden and not FENCE.match(line)]


def _fences(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Yields first line, last line and tag of each closed fence; a fence that holds Markdown may contain others."""
    opened: list[tuple[int, str, str]] = []
    for place, line in enumerate(lines):
        found = FENCE.match(line)
        if found is None:
            continue
        mark, tag = found["mark"], found["tag"].strip("{.}").lower()
        depth = None if tag else _closed_depth(mark, [other for _, other, _ in opened])
        if depth is not None:
            yield opened[depth][0], place, opened[depth][2]
            del opened[depth:]
        elif not opened or (opened[-1][2] in {"", *_PROSE_TAGS} and len(opened) < _DEEPEST_FENCE):
            opened.append((place, mark, tag))


def _closed_depth(mark: str, opened: Sequence[str]) -> int | None:
    """Returns the fence that a mark closes: the innermost of its length, or else the innermost if that is shorter."""
    same = [depth for depth, other in enumerate(opened) if other == mark]
    if same:
        return same[-1]
    return len(opened) - 1 if opened and mark.startswith(opened[-1]) else None
