"""Trails that fit. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.models.protocols import TokenCounter

TRAIL_SEPARATOR = " › "


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A piece of a report file, at most the model's window long, its trail included."""

    trail: tuple[str, ...]
    """File title › heading › heading; never empty."""
    text: str
    pointer: str = ""
    """RFC 6901 pointer of the JSON value it was made from; "" for Markdown and for a whole document."""
    occurred_at: datetime | None = None
    final_score: float | None = None
    """The evaluator's score, 0 to 10."""
    left_out: int = 0
    """Chunks of the document that were not kept after this one."""

    @property
    def title(self) -> str:
        """The trail in one line: what stands above the text wherever the chunk is embedded or shown."""
        return TRAIL_SEPARATOR.join(self.trail)


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
