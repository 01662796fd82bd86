"""Splits a run's Markdown or JSON output into sentences. Pure."""

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sentencex  # type: ignore[import-untyped] # the package has no types

from app.foundation.text.markdown import FENCE, FRONT_MATTER, HEADING, ITEM, LONGEST, QUOTE, RULE, plain, without_code

_WIDE_BLANK = re.compile(r"[^\S\x00-\x7f]")
"""White space of more than one byte: after an initial ("A. Lovelace"), the splitter panics at it."""


SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])(?![。！？”’」』）])\s*")
"""The end of a sentence in Markdown; Chinese and Japanese ones are followed by no blank. sentencex is for plain text:
it cut 39 of 1,732 lines of reports differently, most of them within emphasis or a path ("**Quality.", "`." of
"`./hello.py`")."""


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
    found = (HEADING.match(line[:LONGEST]) for line in without_code(_lines(output)))
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
    return [stripped for part in sentencex.segment("en", _WIDE_BLANK.sub(" ", text)) if (stripped := part.strip())]


def _blocks(output: str) -> Iterator[tuple[str, bool]]:
    """Yields paragraphs, items, rows and JSON leaves in order, each with True if it is prose.

    The first reading that finds any counts: as JSON, as Markdown without code, as Markdown with it.
    """
    lines = _lines(output)
    shown = without_code(lines)
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
            yield from _markdown_blocks(without_code(_lines(value)))
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
