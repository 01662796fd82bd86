"""When a document says that it happened. Pure."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from app.reports.keys import normal_facts

DATE_KEYS = (
    "occurred_at", "date", "judged_at", "evaluated_at", "finished_at", "completed_at", "ended_at", "end_time",
    "measured_at", "generated_at", "generated", "created_at", "created", "published_at", "published", "run_date",
    "report_date", "timestamp", "datetime", "time", "composed_at", "started_at", "start_time", "updated_at", "updated",
    "last_updated_at", "last_updated",
)  # fmt: skip
"""Keys of a moment, the end of a run before its beginning; the first of these that can be read is taken. Keys of a
moment to come (due, expires) are left out."""
SECONDS = range(10**8, 10**11)
"""Numbers that are seconds since 1970: from March 1973 on, as a smaller one is more likely a count."""
MILLISECONDS = range(10**11, 10**14)
LONGEST = 64
"""Characters of a written date."""
WRITTEN = ("%d %B %Y", "%d %b %Y", "%B %d, %Y", "%b %d, %Y", "%d.%m.%Y", "%Y/%m/%d", "%Y/%m/%d %H:%M:%S", "%Y-%m-%d %H:%M")
ZONE_NAME = re.compile(r"\s*(?:UTC|GMT)$")


def found_date(facts: Mapping[str, Any]) -> datetime | None:
    """When an object or a front matter says that it happened: ISO 8601, RFC 5322, `3 March 2026`, `03.03.2026`, or
    seconds or milliseconds since 1970. In UTC where no zone is named; None where nothing can be read."""
    given = normal_facts(facts)
    found = (_moment(given[key]) for key in DATE_KEYS if key in given)
    return next((moment for moment in found if moment is not None), None)


def _moment(value: Any) -> datetime | None:  # noqa: ANN401 - any JSON or YAML value
    try:
        match value:
            case bool():
                return None
            case datetime():
                return _in_utc(value)
            case date():
                return datetime(value.year, value.month, value.day, tzinfo=UTC)
            case int() | float():
                return _epoch(value)
            case str() if len(value) <= LONGEST:
                return _written(value.strip())
    except (ValueError, OverflowError, OSError):
        pass
    return None


def _in_utc(moment: datetime) -> datetime:
    return (moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment).astimezone(UTC)


def _epoch(value: float) -> datetime | None:
    if not math.isfinite(value):
        return None
    if int(value) in SECONDS:
        return datetime.fromtimestamp(value, UTC)
    return datetime.fromtimestamp(value / 1000, UTC) if int(value) in MILLISECONDS else None


def _written(text: str) -> datetime | None:
    if text.isdecimal() and len(text) > len("YYYYMMDD"):
        return _epoch(int(text))
    text = ZONE_NAME.sub("", text) if not text.endswith(" GMT") or "," not in text else text
    try:
        return _in_utc(datetime.fromisoformat(text))
    except ValueError:
        return _in_words(text)


def _in_words(text: str) -> datetime | None:
    for form in WRITTEN:
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    # RFC 5322; the library reads a date into nearly any line with a comma, so that its year is asked for.
    if re.fullmatch(r"(?:\w{3}, )?\d{1,2} \w{3} \d{4} \d{2}:\d{2}(?::\d{2})?(?: \S+)?", text):
        return _in_utc(parsedate_to_datetime(text))
    return None
