"""A chunk, its heading path and text cut to fit, and the plot that its document is. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from app.foundation.models.protocols import TokenCounter
from app.foundation.text.pieces import leads_in, says_something, split_prose
from app.foundation.text.scores import DATE_LINE, MARKS, written_moment
from app.foundation.text.words import NEGATION, content_words

HEADING_SEPARATOR = " › "


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A piece of a report file, at most the model's window long, its heading path included."""

    heading_path: tuple[str, ...]
    """File title › heading › heading; never empty."""
    text: str
    pointer: str = ""
    """RFC 6901 pointer of the JSON value it was made from; "" for Markdown and for a whole document."""
    occurred_at: datetime | None = None
    final_score: float | None = None
    """The evaluator's score, 0 to 10."""
    left_out: int = 0
    """Number of chunks after this one that were dropped from the document."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """The scalars by which its file describes itself, by key."""

    @property
    def title(self) -> str:
        """The heading path in one line; it precedes the text when the chunk is embedded or shown."""
        return HEADING_SEPARATOR.join(self.heading_path)


_PART_CHARACTERS = 160
"""Longest part of a heading path, in characters; of a longer heading, the beginning tells the subject."""


def fit_heading_path(heading_path: Sequence[str], counter: TokenCounter, room: int) -> tuple[tuple[str, ...], int]:
    """Returns the heading path in at most `room` tokens, and its tokens: cuts long parts, then drops middle ones."""
    parts = [part if len(part) <= _PART_CHARACTERS else part[:_PART_CHARACTERS].rstrip() + "…" for part in heading_path]
    while (used := counter.count(HEADING_SEPARATOR.join(parts))) > room and len(parts) > 1:
        del parts[1 if len(parts) > 2 else 0]  # noqa: PLR2004 - the file's title goes last but one
    while used > room:
        parts = [parts[0][: len(parts[0]) // 2]]
        used = counter.count(parts[0])
    return tuple(parts), used


def split_to_fit(pieces: Sequence[str], counter: TokenCounter, room: int) -> list[str]:
    """Returns the pieces; those of more than `room` tokens are split as prose."""
    return [
        part
        for piece, count in zip(pieces, counter.count_many(pieces), strict=True)
        for part in ([piece] if count <= room else split_prose(piece, room, counter))
    ]


_EMPTY = frozenset({"null", "n/a", "tbd", "todo"})
_SPEAKING_WORDS = 4
"""A heading of at least this many words besides stop words states something by itself; so does one with a number, like
"P0: no actors", or a negation."""
_NUMBERING = re.compile(r"^\d[\d.)]*\s")


def has_content(text: str) -> bool:
    """Tells if a chunk's text states anything besides dates, headings without a body and empty values."""
    return any(_states(line) for line in text.splitlines())


def _states(line: str) -> bool:
    said = line.strip(MARKS)
    if leads_in(line) or said.endswith(":"):
        return _speaks(_NUMBERING.sub("", said))
    dated = DATE_LINE.match(line)
    if written_moment(dated["value"] if dated else said):
        return False
    value = said.partition(": ")[2].strip(MARKS) or said
    return says_something(value) and value.lower() not in _EMPTY


def _speaks(heading: str) -> bool:
    is_specific = any(map(str.isdigit, heading)) or NEGATION.search(heading) is not None
    return is_specific or len(content_words(heading)) >= _SPEAKING_WORDS


_PARTS = ("layer", "hconcat", "vconcat", "concat")
_DATA = frozenset({"values", "url", "name"})
_SAID_BY = ("title", "description", "field", "text", "subtitle")
_LONGEST = 200
"""Longest title, in characters; a longer text is data."""


def is_plot(document: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Tells by its content whether the document is a Vega, Vega-Lite or Plotly specification."""
    if not isinstance(document, Mapping):
        return False
    schema = str(document.get("$schema", "")).lower()
    plotly = isinstance(document.get("data"), list) and isinstance(document.get("layout"), Mapping)
    return "vega" in schema or plotly or (_draws(document) and _has_data(document.get("data")))


def _draws(document: Mapping[str, Any]) -> bool:
    marked = "mark" in document and isinstance(document.get("encoding"), Mapping)
    return marked or any(isinstance(document.get(part), list) for part in _PARTS)


def _has_data(data: Any) -> bool:  # noqa: ANN401 - any JSON value
    return isinstance(data, Mapping) and bool(_DATA & data.keys())


def plot_summary(document: Mapping[str, Any]) -> str:
    """Returns the titles, descriptions and field names of a plot."""
    said = dict.fromkeys(_chart_labels(document))
    return "plot of " + ", ".join(said) if said else "plot"


def _chart_labels(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON value
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key in _SAID_BY and isinstance(item, str) and 0 < len(item) <= _LONGEST:
                yield item
            elif key not in {"datasets", "values"}:
                yield from _chart_labels(item)
    elif isinstance(value, list):
        for item in value:
            yield from _chart_labels(item)
