"""A chunk: its heading path and text cut to fit, and the date, score or plot that its document states. Pure."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from app.models.protocols import TokenCounter
from app.text.pieces import split_prose

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

    @property
    def title(self) -> str:
        """The heading path in one line; it precedes the text when the chunk is embedded or shown."""
        return HEADING_SEPARATOR.join(self.heading_path)


PART_CHARACTERS = 160
"""Longest part of a heading path, in characters; of a longer heading, the beginning tells the subject."""


def fitted(heading_path: Sequence[str], counter: TokenCounter, room: int) -> tuple[tuple[str, ...], int]:
    """Returns the heading path in at most `room` tokens, and its tokens: cuts long parts, then drops middle ones."""
    parts = [part if len(part) <= PART_CHARACTERS else part[:PART_CHARACTERS].rstrip() + "…" for part in heading_path]
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


DATE_KEYS = (
    "occurred_at", "date", "judged_at", "evaluated_at", "finished_at", "completed_at", "ended_at", "end_time",
    "created_at", "created", "generated_at", "measured_at", "timestamp", "updated_at", "started_at", "start_time",
)  # fmt: skip
"""Keys of a date, the best first; the first readable one is used."""
FINAL_SCORE = "final_score"
"""Key of a score that is from 0 to 10 by definition. It is not rescaled: a failed run's 1.0 stays 1 of 10."""
SCORE_KEYS = ("overall_score", "score")
"""Keys of a score on any scale."""
SCALE_KEYS = ("max_score", "score_max", "maximum", "max", "out_of", "scale")
"""Keys, beside a score, of the largest possible score."""
SECONDS = range(10**8, 10**11)
"""Numbers that are seconds since 1970 (1973 to 5138)."""
MILLISECONDS = range(10**11, 10**14)
FRACTION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:/\s*(\d+(?:\.\d+)?)|(%))?\s*")
LARGEST = 10.0
LARGEST_SCALE = 1_000
PERCENT = 100.0


def found_date(facts: Mapping[str, Any]) -> datetime | None:
    """Returns the date that a document states; in UTC if it names no zone."""
    found = (_moment(facts[key]) for key in DATE_KEYS if key in facts)
    return next((moment for moment in found if moment is not None), None)


def found_score(facts: Mapping[str, Any]) -> float | None:
    """Returns the evaluator's score on the scale from 0 to 10.

    `final_score` is on this scale. Other scores name their scale by their form (`7.5/10`, `75%`) or by a key beside
    them. Without that, a fraction of at most 1 (0.96) is a share of ten, and a number above ten is a percentage.
    """
    if (score := _on_scale(facts.get(FINAL_SCORE), LARGEST)) is not None:
        return score
    whole = next(
        (facts[key] for key in SCALE_KEYS if is_number(facts.get(key)) and 1 <= facts[key] <= LARGEST_SCALE), None
    )
    found = (_score(facts[key], whole) for key in SCORE_KEYS if key in facts)
    return next((score for score in found if score is not None), None)


def _moment(value: Any) -> datetime | None:  # noqa: ANN401 - any JSON or YAML value
    try:
        match value:
            case datetime():
                moment = value
            case date():
                moment = datetime(value.year, value.month, value.day)  # noqa: DTZ001 - UTC is assumed below
            case bool():
                return None
            case int() | float():
                return _epoch(value)
            case str():
                moment = datetime.fromisoformat(value.strip())
            case _:
                return None
        return (moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _epoch(value: float) -> datetime | None:
    if not is_number(value):
        return None
    if int(value) in SECONDS:
        return datetime.fromtimestamp(value, UTC)
    return datetime.fromtimestamp(value / 1000, UTC) if int(value) in MILLISECONDS else None


def _score(value: Any, whole: float | None) -> float | None:  # noqa: ANN401 - any JSON or YAML value
    if whole is not None:
        return _on_scale(value, whole)
    if isinstance(value, float) and value <= 1:
        return _on_scale(value, 1)
    return _on_scale(value, PERCENT if is_number(value) and value > LARGEST else LARGEST)


def _on_scale(value: Any, whole: float) -> float | None:  # noqa: ANN401 - any JSON or YAML value
    """Returns a number of at most `whole` on the scale from 0 to 10; a text names its own scale."""
    if isinstance(value, str):
        return _written_score(value)
    return value * LARGEST / whole if is_number(value) and 0 <= value <= whole else None


def is_number(value: Any) -> bool:  # noqa: ANN401 - any JSON or YAML value
    """Tells if a value is a finite number; an integer is one, even one too large for a float."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))


def _written_score(text: str) -> float | None:
    match = FRACTION.fullmatch(text)
    if match is None:
        return None
    value, whole = float(match[1]), PERCENT if match[3] else float(match[2] or LARGEST)
    return value / whole * LARGEST if whole and value <= whole else None


PARTS = ("layer", "hconcat", "vconcat", "concat")
DATA = frozenset({"values", "url", "name"})
SAID_BY = ("title", "description", "field", "text", "subtitle")
LONGEST = 200
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
    return marked or any(isinstance(document.get(part), list) for part in PARTS)


def _has_data(data: Any) -> bool:  # noqa: ANN401 - any JSON value
    return isinstance(data, Mapping) and bool(DATA & data.keys())


def plot_summary(document: Mapping[str, Any]) -> str:
    """Returns the titles, descriptions and field names of a plot."""
    said = dict.fromkeys(_said(document))
    return "plot of " + ", ".join(said) if said else "plot"


def _said(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON value
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key in SAID_BY and isinstance(item, str) and 0 < len(item) <= LONGEST:
                yield item
            elif key not in {"datasets", "values"}:
                yield from _said(item)
    elif isinstance(value, list):
        for item in value:
            yield from _said(item)
