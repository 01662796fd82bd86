"""Sentences of a Markdown output. Pure."""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

LONGEST = 20_000
"""Characters of one line; what is longer is no prose and is cut there."""
FENCE = re.compile(r"^\s{0,3}(?:```|~~~)")
FRONT_MATTER = re.compile(r"\A\ufeff?---\s*\n.{0,20000}?\n---\s*(?:\n|\Z)", re.DOTALL)
HEADING = re.compile(r"^\s{0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
RULE = re.compile(r"^[\s|:+=_*-]+$")
ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
QUOTE = re.compile(r"^\s*(?:>\s?)+")
LINK = re.compile(r"!?\[([^\]\n]{0,300})\]\([^)\n]{0,2000}\)")
EMPHASIS = re.compile(r"(\*\*|__|`+|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w))")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A sentence, an item of a list or a row of a table."""

    text: str
    place: int
    is_prose: bool
    """Whether it can stand in a narrative; a row of a table cannot."""


def heading_of(output: str) -> str:
    """The output's own first heading; "" where it has none."""
    lines = _outside_code(output)
    found = (HEADING.match(line) for line in lines)
    return next((plain(match[2]) for match in found if match and plain(match[2])), "")


def sentences(output: str) -> list[Sentence]:
    """Every sentence of the whole output once, headings and code left out."""
    found: dict[str, bool] = {}
    for block, is_prose in _blocks(output):
        for sentence in sentences_of(block) if is_prose else [block]:
            found.setdefault(sentence, is_prose)
    return [Sentence(text=text, place=place, is_prose=is_prose) for place, (text, is_prose) in enumerate(found.items())]


def sentences_of(text: str) -> list[str]:
    """The sentences of plain text."""
    import sentencex  # type: ignore[import-untyped] # noqa: PLC0415 - it carries no types; only where something is compressed

    return [stripped for part in sentencex.segment("en", text) if (stripped := part.strip())]


def plain(text: str) -> str:
    """Without Markdown's marks."""
    return " ".join(EMPHASIS.sub("", LINK.sub(r"\1", text)).split())


def _blocks(output: str) -> Iterator[tuple[str, bool]]:
    """Paragraphs, items and rows, in their order; whether each is prose."""
    paragraph: list[str] = []
    header: list[str] = []
    for line in [*_outside_code(output), ""]:
        bare = QUOTE.sub("", line[:LONGEST])
        starts_item = ITEM.match(bare) is not None
        is_row = bare.strip().startswith("|")
        silent = not bare.strip() or HEADING.match(bare) is not None or RULE.match(bare) is not None
        if paragraph and (starts_item or is_row or silent):
            yield plain(" ".join(paragraph)), True
            paragraph = []
        if not is_row:
            header = []
        if is_row and not silent:
            cells = _cells(bare)
            if header:
                yield _row(header, cells), False
            header = header or cells
        elif not silent:
            paragraph.append(ITEM.sub("", bare) if starts_item else bare)


def _cells(line: str) -> list[str]:
    return [plain(cell) for cell in line.strip().strip("|").split("|")]


def _row(header: Sequence[str], cells: Sequence[str]) -> str:
    """Each cell after its column's name, so that a row says something by itself."""
    named = itertools.zip_longest(header, cells, fillvalue="")
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in named if cell)


def _outside_code(output: str) -> Sequence[str]:
    kept: list[str] = []
    inside = False
    for line in FRONT_MATTER.sub("", output, count=1).splitlines():
        if FENCE.match(line):
            inside = not inside
        elif not inside:
            kept.append(line)
    return kept
