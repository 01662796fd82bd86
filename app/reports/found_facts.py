"""Dates and scores in front matter and JSON. Pure."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

DATE_KEYS = (
    "occurred_at", "date", "judged_at", "evaluated_at", "finished_at", "completed_at", "ended_at", "end_time",
    "created_at", "created", "generated_at", "measured_at", "timestamp", "updated_at", "started_at", "start_time",
)  # fmt: skip
"""Where a document says when it happened; the first of these that can be read is taken."""
SCORE_KEYS = ("final_score", "overall_score", "score")
SECONDS = range(10**8, 10**11)
"""Numbers that are seconds since 1970 (1973 to 5138)."""
MILLISECONDS = range(10**11, 10**14)
FRACTION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:/\s*(\d+(?:\.\d+)?)|(%))?\s*")
LARGEST = 10.0
PERCENT = 100.0


def found_date(facts: Mapping[str, Any]) -> datetime | None:
    """When the document says that it happened, in UTC where it names no zone."""
    found = (_moment(facts[key]) for key in DATE_KEYS if key in facts)
    return next((moment for moment in found if moment is not None), None)


def found_score(facts: Mapping[str, Any]) -> float | None:
    """The evaluator's score on the scale from 0 to 10.

    A fraction at most 1 (0.96) is a share of ten, a number beyond ten a percentage; `7.5/10` and `75%` say so.
    """
    found = (_score(facts[key]) for key in SCORE_KEYS if key in facts)
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
    if not finite(value):
        return None
    if int(value) in SECONDS:
        return datetime.fromtimestamp(value, UTC)
    return datetime.fromtimestamp(value / 1000, UTC) if int(value) in MILLISECONDS else None


def _score(value: Any) -> float | None:  # noqa: ANN401 - any JSON or YAML value
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return _written_score(value)
    if not isinstance(value, int | float) or not finite(value) or not 0 <= value <= PERCENT:
        return None
    if isinstance(value, float) and value <= 1:
        return value * LARGEST
    return value / LARGEST if value > LARGEST else float(value)


def finite(value: float) -> bool:
    """Whether it is a number; an integer always is, also one too large for a float."""
    return isinstance(value, int) or math.isfinite(value)


def _written_score(text: str) -> float | None:
    match = FRACTION.fullmatch(text)
    if match is None:
        return None
    value, whole = float(match[1]), PERCENT if match[3] else float(match[2] or LARGEST)
    return value / whole * LARGEST if whole and value <= whole else None
