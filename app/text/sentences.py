"""Sentences of a Markdown output. Pure."""

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

LONGEST = 20_000
"""Characters of one line; what is longer is no prose and is cut there."""
FENCE = re.compile(r"^ {0,3}(?P<mark>`{3,}+(?!.*`)|~{3,}+)[ \t]*(?P<tag>\S*)")
PROSE = frozenset({"md", "markdown", "mdx", "text", "txt", "plaintext"})
"""What a fence is tagged with that holds no code."""
DEEPEST_FENCE = 8
FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\n.{0,20000}?\n---[ \t]*(?:\n|\Z)", re.DOTALL)
HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.*)$")
"""What follows is the heading's text, with the marks that may close it."""
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
    found = (HEADING.match(line[:LONGEST]) for line in _shown(_lines(output)))
    texts = (plain(match[2].rstrip().rstrip("#")) for match in found if match)
    return next((text for text in texts if text), "")


def first_words(output: str) -> str:
    """What the output begins with."""
    return next((text for text, _ in _blocks(output)), "") or heading_of(output)


def sentences(output: str) -> list[Sentence]:
    """Every sentence of the whole output once, headings and code left out; of nothing but code its lines."""
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
    """Paragraphs, items, rows and leaves, in their order; whether each is prose."""
    lines = _lines(output)
    shown = _shown(lines)
    for found in (_of_json(shown), _of_markdown(shown), _of_markdown(lines)):
        first = next(found, None)
        if first is not None:
            yield first
            yield from found
            return


def _of_markdown(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    paragraph: list[str] = []
    header: list[str] = []
    for line in itertools.chain((line for line in lines if not FENCE.match(line)), [""]):
        bare = QUOTE.sub("", line[:LONGEST])
        starts_item = ITEM.match(bare) is not None
        is_row = bare.strip().startswith("|")
        silent = not bare.strip() or HEADING.match(bare) is not None or RULE.match(bare) is not None
        if paragraph and (starts_item or is_row or silent):
            yield from _told(plain(" ".join(paragraph)), is_prose=True)
            paragraph = []
        if not is_row:
            header = []
        if is_row and not silent:
            cells = _cells(bare)
            if header:
                yield from _told(_row(header, cells), is_prose=False)
            header = header or cells
        elif not silent:
            paragraph.append(ITEM.sub("", bare) if starts_item else bare)


def _told(text: str, *, is_prose: bool) -> Iterator[tuple[str, bool]]:
    if text:
        yield text, is_prose


def _of_json(lines: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Each leaf after its key, and each flat object of a list as a row, should the whole output be JSON."""
    text = "\n".join(lines).strip()
    if not text.startswith(("{", "[")):
        return
    try:
        loaded = json.loads(text)
    except (ValueError, RecursionError):
        return
    for key, value in _leaves(loaded):
        if isinstance(value, dict):
            yield from _told(_row(list(value), [_scalar(item) for item in value.values()]), is_prose=False)
        elif isinstance(value, str) and "\n" in value:
            yield from _of_markdown(_shown(_lines(value)))
        else:
            yield from _told(_row([key], [_scalar(value)]), is_prose=isinstance(value, str))


def _leaves(value: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - any JSON value
    """Everything that holds nothing more, and the flat objects of lists; without recursion, however deep."""
    waiting = [("", value, False)]
    while waiting:
        key, item, is_row = waiting.pop()
        if isinstance(item, dict) and not is_row:
            waiting.extend((name, part, False) for name, part in reversed(item.items()))
        elif isinstance(item, list):
            waiting.extend((key, part, _is_flat(part)) for part in reversed(item))
        else:
            yield key, item


def _is_flat(value: Any) -> bool:  # noqa: ANN401 - any JSON value
    return isinstance(value, dict) and not any(isinstance(part, dict | list) for part in value.values())


def _scalar(value: Any) -> str:  # noqa: ANN401 - any JSON scalar
    if value is None:
        return ""
    return plain(value[:LONGEST]) if isinstance(value, str) else json.dumps(value)


def _cells(line: str) -> list[str]:
    return [plain(cell) for cell in line.strip().strip("|").split("|")]


def _row(header: Sequence[str], cells: Sequence[str]) -> str:
    """Each cell after its column's name, so that a row says something by itself."""
    named = itertools.zip_longest(header, cells, fillvalue="")
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in named if cell)


def _lines(output: str) -> list[str]:
    return FRONT_MATTER.sub("", output, count=1).splitlines()


def _shown(lines: Sequence[str]) -> list[str]:
    """Without code: what stands in a fence that ends, unless it is tagged as prose or is the whole output."""
    hidden = bytearray(len(lines))
    filled = [place for place, line in enumerate(lines) if line.strip()]
    for start, end, tag in _fences(lines):
        is_all = (start, end) == (filled[0], filled[-1])
        if tag not in PROSE and not is_all:
            hidden[start:end] = b"\1" * (end - start)
    return [line for line, is_hidden in zip(lines, hidden, strict=True) if not is_hidden and not FENCE.match(line)]


def _fences(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """First line, last line and tag of each fence that ends; fences stand in fences that hold Markdown."""
    opened: list[tuple[int, str, str]] = []
    for place, line in enumerate(lines):
        found = FENCE.match(line)
        if found is None:
            continue
        mark, tag = found["mark"], found["tag"].strip("{.}").lower()
        depth = None if tag else _closed(mark, [other for _, other, _ in opened])
        if depth is not None:
            yield opened[depth][0], place, opened[depth][2]
            del opened[depth:]
        elif not opened or (opened[-1][2] in {"", *PROSE} and len(opened) < DEEPEST_FENCE):
            opened.append((place, mark, tag))


def _closed(mark: str, opened: Sequence[str]) -> int | None:
    """Which of the open fences this mark ends: the innermost of its very length, or else the innermost if shorter."""
    same = [depth for depth, other in enumerate(opened) if other == mark]
    if same:
        return same[-1]
    return len(opened) - 1 if opened and mark.startswith(opened[-1]) else None
