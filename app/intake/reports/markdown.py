"""Chunks Markdown by its headings. Text stays as it is in the file. Pure."""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import partial
from typing import Any

from app.foundation.models.protocols import TokenCounter
from app.foundation.text.passages import cut_encoded_data, lines_of, pack_pieces, says_something
from app.foundation.text.prose import FENCE, blocks
from app.foundation.text.scores import found_date, found_score, moment_of, written_date
from app.intake.reports.chunk import (
    LEAST_ROOM,
    VALUE_CHARACTERS,
    Chunk,
    fit_heading_path,
    has_content,
    is_scalar,
    is_shown,
    split_to_fit,
)

_PARAGRAPH = "paragraph"
_SCALARS = (str, int, float, date)
_NEWLINE = "\n"
_SMALL = 16
"""Sections of fewer tokens are joined with their neighbours under the same heading, including their headings."""


@dataclass(slots=True)
class _ReportSection:
    """The text between a heading and the next."""

    heading_path: tuple[str, ...]
    heading: str
    blocks: list[tuple[str, str]] = field(default_factory=list)
    """The kinds and the source lines of its blocks."""


def chunk_markdown(facts: Mapping[str, Any], body: str, name: str, counter: TokenCounter) -> list[Chunk]:
    """Returns the chunks of a Markdown text below its front matter; `name` is its title if it has none of its own."""
    fields, texts = _front_matter_fields(facts)
    sections = _sections(cut_encoded_data(body), _title(facts), name)
    if texts or not any(has_content(said) for section in sections for _, said in section.blocks):
        sections[0].blocks.insert(0, (_PARAGRAPH, _lines(texts or fields)))
    dated = found_date(facts) or written_date(body) or _changed_last(body)
    part = partial(Chunk, occurred_at=dated, final_score=found_score(facts), fields=fields)
    return [part(heading_path=heading_path, text=piece.rstrip()) for heading_path, piece in _pieces(sections, counter)]


_CHANGELOG = re.compile(
    r"^#+[ \t]*change ?log[ \t]*\n(?P<lines>.{0,4000}?)(?=^#|\Z)", re.IGNORECASE | re.MULTILINE | re.DOTALL
)
_CHANGED = re.compile(r"^[ \t]*(?:[-*+][ \t]+)?(\d{1,4}[-/.]\d\d?[-/.]\d{2,4})\b", re.MULTILINE)
"""A line of the list of changes begins with its date."""


def _changed_last(body: str) -> datetime | None:
    """Returns the last date of a text's list of changes, such as a decision record has."""
    lines = _CHANGELOG.search(body)
    dates = _CHANGED.findall(lines["lines"]) if lines else ()
    return max(filter(None, map(moment_of, dates)), default=None)


def _title(facts: Mapping[str, Any]) -> str:
    title = facts.get("title", "")
    return " ".join(str(title).split()) if isinstance(title, _SCALARS) else ""


def _front_matter_fields(facts: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the fields of the file that the front matter states, and its other values, both without the title.

    Nested values are left out: aliases may make them endless.
    """
    flat = {str(key): value if isinstance(value, list) else [value] for key, value in facts.items() if key != "title"}
    stated = {
        key: values[0] if len(values) == 1 else ", ".join(map(str, values))
        for key, values in flat.items()
        if values and all(isinstance(value, _SCALARS) for value in values)
    }
    fields = {
        key: value
        for key, value in stated.items()
        if all(is_scalar(key, item) for item in flat[key]) and len(str(value)) <= VALUE_CHARACTERS
        if is_shown(key, value)
    }
    return fields, {key: value for key, value in stated.items() if key not in fields}


def _lines(values: Mapping[str, Any]) -> str:
    return cut_encoded_data("".join(f"{key}: {value}\n" for key, value in values.items()))


def _sections(body: str, title: str, name: str) -> list[_ReportSection]:
    lines = lines_of(body)
    found = list(blocks(body))
    first = next((block.heading for block in found if block.depth == 1), "")
    top = title or first or name
    sections = [_ReportSection(heading_path=(top,), heading="")]
    above: list[tuple[int, str]] = []
    told = 0
    for block in found:
        source = "".join(lines[block.first : block.last])
        # The parser makes no block of link definitions, which are often a report's list of sources.
        sections[-1].blocks += _untold(lines[told : block.first])
        told = block.last
        if block.kind != "heading":
            sections[-1].blocks.append((block.kind, source))
            continue
        above = [(level, text) for level, text in above if level < block.depth]
        above.append((block.depth, block.heading))
        heading_path = tuple(text for _, text in above if text)
        sections.append(
            _ReportSection(
                heading_path=heading_path if heading_path[:1] == (top,) else (top, *heading_path), heading=source
            )
        )
    sections[-1].blocks += _untold(lines[told:])
    return _with_bare_headings(sections)


def _untold(lines: Sequence[str]) -> list[tuple[str, str]]:
    text = "".join(lines)
    return [(_PARAGRAPH, text)] if says_something(text) else []


def _with_bare_headings(sections: Sequence[_ReportSection]) -> list[_ReportSection]:
    """Returns the sections; a heading without a text becomes the text of its section."""
    for section, following in itertools.zip_longest(sections, sections[1:]):
        leads = (
            following is not None
            and following.heading_path[: len(section.heading_path)] == section.heading_path != following.heading_path
        )
        if section.heading and not section.blocks and not leads:
            section.blocks, section.heading = [(_PARAGRAPH, section.heading)], ""
    return list(sections)


def _pieces(sections: Sequence[_ReportSection], counter: TokenCounter) -> Iterator[tuple[tuple[str, ...], str]]:
    spoken = [section for section in sections if says_something("".join(text for _, text in section.blocks))]
    for group in _together(spoken, counter):
        if len(group) == 1:
            yield from _cut(group[0].heading_path, group[0].blocks, counter)
        else:
            blocks = [(_PARAGRAPH, section.heading + "".join(text for _, text in section.blocks)) for section in group]
            yield from _cut(group[0].heading_path[:-1], blocks, counter)


def _together(sections: Sequence[_ReportSection], counter: TokenCounter) -> Iterator[list[_ReportSection]]:
    """Yields runs of small sections under one heading, and every other section by itself."""
    counts = counter.count_many(["".join(text for _, text in section.blocks) for section in sections])
    group: list[_ReportSection] = []
    used = 0
    for section, count in zip(sections, counts, strict=True):
        parent = section.heading_path[:-1]
        belongs = group and parent and parent == group[0].heading_path[:-1]
        if group and not (belongs and count <= _SMALL and used + count <= 2 * _SMALL):
            yield group
            group, used = [], 0
        group.append(section)
        used += count if count <= _SMALL else 2 * _SMALL
    if group:
        yield group


def _cut(
    heading_path: tuple[str, ...], blocks: Sequence[tuple[str, str]], counter: TokenCounter
) -> Iterator[tuple[tuple[str, ...], str]]:
    shown, room = fit_heading_path(heading_path, counter)
    pieces: list[str] = []
    for (kind, text), count in zip(blocks, counter.count_many([text for _, text in blocks]), strict=True):
        pieces += [text] if count <= room else _split_block(kind, text, room, counter)
    for piece in pack_pieces(pieces, counter.count_many(pieces), room, "\n"):
        if says_something(piece):
            yield shown, piece.strip("\n")


def _split_block(kind: str, text: str, room: int, counter: TokenCounter) -> list[str]:
    splitter = _SPLITTERS.get(kind)
    parts = splitter(text, room, counter) if splitter else [text]
    return split_to_fit(parts, counter, room)


def _split_table(text: str, room: int, counter: TokenCounter) -> list[str]:
    lines = lines_of(text)
    header = "".join(lines[:2])
    return _lines_in_groups(header, lines[2:], "", room, counter)


def _split_fence(text: str, room: int, counter: TokenCounter) -> list[str]:
    lines = lines_of(text)
    opened = FENCE.match(text)
    mark = opened["mark"] if opened else ""
    closed = len(lines) > 1 and lines[-1].strip().startswith(mark)
    return _lines_in_groups(lines[0], lines[1:-1] if closed else lines[1:], f"{mark}\n", room, counter)


def _lines_in_groups(top: str, lines: Sequence[str], bottom: str, room: int, counter: TokenCounter) -> list[str]:
    """Returns the lines in groups, each between `top` and `bottom`; without these if they leave no room."""
    inner = room - counter.count(top + bottom)
    if inner < LEAST_ROOM // 2:
        top, bottom, inner = "", "", room
    whole = split_to_fit(lines, counter, inner)
    groups = pack_pieces(whole, counter.count_many(whole), inner, "")
    return [f"{top}{group if group.endswith(_NEWLINE) or not bottom else group + _NEWLINE}{bottom}" for group in groups]


_ITEM = re.compile(r"(?m)^(?=(?:[-*+]|\d{1,9}[.)])[ \t])")


def _split_list(text: str, room: int, counter: TokenCounter) -> list[str]:
    """Returns the list's items, packed; a nested item stays with its parent."""
    items = [item for item in _ITEM.split(text) if item]
    return list(pack_pieces(items, counter.count_many(items), room, ""))


_SPLITTERS: Mapping[str, Callable[[str, int, TokenCounter], list[str]]] = {
    "table": _split_table,
    "fence": _split_fence,
    "list": _split_list,
}
