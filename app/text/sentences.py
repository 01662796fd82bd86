"""Splits a run's Markdown or JSON output into sentences. Pure."""

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sentencex  # type: ignore[import-untyped] # the package has no types

LONGEST = 20_000
"""Characters that are read of one line; a longer line is no prose."""
FENCE = re.compile(r"^ {0,3}(?P<mark>`{3,}+(?!.*`)|~{3,}+)[ \t]*(?P<tag>\S*)")
PROSE_TAGS = frozenset({"md", "markdown", "mdx", "text", "txt", "plaintext"})
"""Tags of fences that hold no code."""
DEEPEST_FENCE = 8
FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\n.{0,20000}?\n---[ \t]*(?:\n|\Z)", re.DOTALL)
HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.*)$")
"""A heading; its text may end with closing marks."""
RULE = re.compile(r"^[\s|:+=_*-]+$")
ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
QUOTE = re.compile(r"^\s*(?:>\s?)+")
LINK = re.compile(r"!?\[([^\]\n]{0,300})\]\([^)\n]{0,2000}\)")
EMPHASIS = re.compile(r"(\*\*|__|`+|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w))")

WIDE_BLANK = re.compile(r"[^\S\x00-\x7f]")
"""White space of more than one byte: after an initial ("A. Lovelace"), the splitter panics at it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A sentence, an item of a list or a row of a table."""

    text: str
    place: int
    """Position among the output's sentences, from 0."""
    is_prose: bool
    """True if a narrative can use it; a row of a table cannot."""


def heading_of(output: str) -> str:
    """Returns the output's first heading; "" if it has none."""
    found = (HEADING.match(line[:LONGEST]) for line in _without_code(_lines(output)))
    texts = (plain(match[2].rstrip().rstrip("#")) for match in found if match)
    return next((text for text in texts if text), "")


def first_words(output: str) -> str:
    """Returns the first block of the output, or its first heading."""
    return next((text for text, _ in _blocks(output)), "") or heading_of(output)


def sentences(output: str) -> list[Sentence]:
    """Lists the output's distinct sentences, without headings and code; if it is all code, the lines of that."""
    found: dict[str, bool] = {}
    for block, is_prose in _blocks(output):
        for sentence in sentences_of(block) if is_prose else [block]:
            found.setdefault(sentence, is_prose)
    return [Sentence(text=text, place=place, is_prose=is_prose) for place, (text, is_prose) in enumerate(found.items())]


def sentences_of(text: str) -> list[str]:
    """Splits plain text into sentences."""
    return [stripped for part in sentencex.segment("en", WIDE_BLANK.sub(" ", text)) if (stripped := part.strip())]


def plain(text: str) -> str:
    """Removes Markdown's emphasis and links, and joins white space."""
    return " ".join(EMPHASIS.sub("", LINK.sub(r"\1", text)).split())


def _blocks(output: str) -> Iterator[tuple[str, bool]]:
    """Yields paragraphs, items, rows and JSON leaves in order, each with True if it is prose.

    The first reading that finds any counts: as JSON, as Markdown without code, as Markdown with it.
    """
    lines = _lines(output)
    shown = _without_code(lines)
    for found in (_json_blocks(shown), _markdown_blocks(shown), _markdown_blocks(lines)):
        first = next(found, None)
        if first is not None:
            yield first
            yield from found
            return


def _markdown_blocks(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    paragraph: list[str] = []
    header: list[str] = []
    for line in itertools.chain((line for line in lines if not FENCE.match(line)), [""]):
        bare = QUOTE.sub("", line[:LONGEST])
        starts_item = ITEM.match(bare) is not None
        is_row = bare.strip().startswith("|")
        is_empty = not bare.strip() or HEADING.match(bare) is not None or RULE.match(bare) is not None
        if paragraph and (starts_item or is_row or is_empty):
            yield from _block(plain(" ".join(paragraph)), is_prose=True)
            paragraph = []
        if not is_row:
            header = []
        if is_row and not is_empty:
            cells = [plain(cell) for cell in bare.strip().strip("|").split("|")]
            if header:
                yield from _block(_row(header, cells), is_prose=False)
            header = header or cells
        elif not is_empty:
            paragraph.append(ITEM.sub("", bare) if starts_item else bare)


def _block(text: str, *, is_prose: bool) -> Iterator[tuple[str, bool]]:
    if text:
        yield text, is_prose


def _json_blocks(lines: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yields each leaf with its key, and each flat object of a list as a row, if the whole output is JSON."""
    text = "\n".join(lines).strip()
    if not text.startswith(("{", "[")):
        return
    try:
        loaded = json.loads(text)
    except (ValueError, RecursionError):
        return
    for key, value in _leaves(loaded):
        if isinstance(value, dict):
            yield from _block(_row(list(value), [_scalar(item) for item in value.values()]), is_prose=False)
        elif isinstance(value, str) and "\n" in value:
            yield from _markdown_blocks(_without_code(_lines(value)))
        else:
            yield from _block(_row([key], [_scalar(value)]), is_prose=isinstance(value, str))


def _leaves(value: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - any JSON value
    """Yields scalars and flat objects of lists with their keys, without recursion, so that any depth is read."""
    pending = [("", value, False)]
    while pending:
        key, item, is_row = pending.pop()
        if isinstance(item, dict) and not is_row:
            pending.extend((name, part, False) for name, part in reversed(item.items()))
        elif isinstance(item, list):
            pending.extend((key, part, _is_flat(part)) for part in reversed(item))
        else:
            yield key, item


def _is_flat(value: Any) -> bool:  # noqa: ANN401 - any JSON value
    return isinstance(value, dict) and not any(isinstance(part, dict | list) for part in value.values())


def _scalar(value: Any) -> str:  # noqa: ANN401 - any JSON scalar
    if value is None:
        return ""
    return plain(value[:LONGEST]) if isinstance(value, str) else json.dumps(value)


def _row(header: Sequence[str], cells: Sequence[str]) -> str:
    """Joins each cell with its column's name, so that a row can be understood alone."""
    named = itertools.zip_longest(header, cells, fillvalue="")
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in named if cell)


def _lines(output: str) -> list[str]:
    return FRONT_MATTER.sub("", output, count=1).splitlines()


def _without_code(lines: Sequence[str]) -> list[str]:
    """Removes closed fences, unless they are tagged as prose or are the whole output."""
    hidden = bytearray(len(lines))
    filled = [place for place, line in enumerate(lines) if line.strip()]
    for start, end, tag in _fences(lines):
        is_all = (start, end) == (filled[0], filled[-1])
        if tag not in PROSE_TAGS and not is_all:
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
        elif not opened or (opened[-1][2] in {"", *PROSE_TAGS} and len(opened) < DEEPEST_FENCE):
            opened.append((place, mark, tag))


def _closed_depth(mark: str, opened: Sequence[str]) -> int | None:
    """Returns the fence that a mark closes: the innermost of its length, or else the innermost if that is shorter."""
    same = [depth for depth, other in enumerate(opened) if other == mark]
    if same:
        return same[-1]
    return len(opened) - 1 if opened and mark.startswith(opened[-1]) else None
