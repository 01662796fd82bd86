"""Trails that fit. Pure."""

from collections.abc import Sequence

from app.embeddings.provider import TokenCounter
from app.reports.chunk import TRAIL_SEPARATOR

PART_CHARACTERS = 160
"""A heading longer than this is a paragraph by another name; its beginning says what it is about."""


def fitted(trail: Sequence[str], counter: TokenCounter, room: int) -> tuple[tuple[str, ...], int]:
    """The trail shortened to at most `room` tokens, and its tokens: long parts are cut, then the middle goes."""
    parts = [part if len(part) <= PART_CHARACTERS else part[:PART_CHARACTERS].rstrip() + "…" for part in trail]
    while (used := counter.count(TRAIL_SEPARATOR.join(parts))) > room and len(parts) > 1:
        del parts[1 if len(parts) > 2 else 0]  # noqa: PLR2004 - the file's title goes last but one
    while used > room:
        parts = [parts[0][: len(parts[0]) // 2]]
        used = counter.count(parts[0])
    return tuple(parts), used
