"""Which memories a recall may bring or a list shows, and the SQL that says so."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.errors import InvalidInput, told_apart
from app.memories.admission import unstorable
from app.memories.memory import KINDS, in_utc

GLOB_LIMIT = 500
LIST_LIMIT = 64
TEXTS = ("source", "tags", "task_types", "verdicts")

OBSERVED = """EXISTS (
    SELECT 1 FROM observations seen WHERE seen.workspace_id = m.workspace_id AND seen.memory_id = m.memory_id
        AND seen.{column} = ANY(%({column}s)s::text[])
)"""
RANGES = {
    "min_quality": "m.quality >= %(min_quality)s::int",
    "max_quality": "m.quality <= %(max_quality)s::int",
    "min_score": "m.final_score >= %(min_score)s::real",
    "max_score": "m.final_score <= %(max_score)s::real",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Conditions that a memory must meet, all of them; an empty one keeps everything."""

    kinds: tuple[str, ...] = ()
    """Any of these kinds."""
    source: str = ""
    """Glob of the source's path from any folder on: `*` within a name, `**` across folders, `?` one character."""
    tags: tuple[str, ...] = ()
    """All of these tags."""
    since: datetime | None = None
    """At or after; of what happened where that is known, else of when it was stored."""
    until: datetime | None = None
    """Before."""
    task_types: tuple[str, ...] = ()
    """An observation of any of these task types."""
    verdicts: tuple[str, ...] = ()
    """An observation with any of these verdicts."""
    min_quality: int | None = None
    max_quality: int | None = None
    min_score: float | None = None
    """Judged, and at least so."""
    max_score: float | None = None

    def __bool__(self) -> bool:
        """Whether anything is filtered."""
        return any(getattr(self, name) not in ((), "", None) for name in self.__slots__)


def check(filters: Filters, *, within: str = "filters.") -> None:
    """Raises InvalidInput where a condition can never be met, or not be asked; `within` stands before its name."""
    for name, message in _reasons(filters):
        raise InvalidInput(f"{within}{name}", message)


def _reasons(filters: Filters) -> Iterator[tuple[str, str]]:
    for kind in filters.kinds:
        if kind not in KINDS:
            yield "kinds", f"{kind!r} is not a kind; there are {', '.join(KINDS)}"
    for name in ("tags", "task_types", "verdicts"):
        if len(getattr(filters, name)) > LIST_LIMIT:
            yield name, f"at most {LIST_LIMIT} are taken"
    if len(filters.source) > GLOB_LIMIT:
        yield "source", f"has more than {GLOB_LIMIT} characters"
    yield from _time_reasons(filters)
    yield from _range_reasons(filters)
    yield from map(told_apart, unstorable({name: getattr(filters, name) for name in TEXTS}))


def _time_reasons(filters: Filters) -> Iterator[tuple[str, str]]:
    for name in ("since", "until"):
        moment = getattr(filters, name)
        try:
            if moment is not None:
                in_utc(moment)
        except (OverflowError, ValueError):
            yield name, "is outside the years 1 to 9999"
    if filters.since and filters.until and in_utc(filters.since) >= in_utc(filters.until):
        yield "until", "must be after since"


def _range_reasons(filters: Filters) -> Iterator[tuple[str, str]]:
    for name, least, most in (("quality", -3, 3), ("score", 0, 10)):
        low, high = getattr(filters, f"min_{name}"), getattr(filters, f"max_{name}")
        for end, value in (("min", low), ("max", high)):
            if value is not None and not least <= value <= most:
                yield f"{end}_{name}", f"must be from {least} to {most}"
        if low is not None and high is not None and low > high:
            yield f"max_{name}", f"must not be below min_{name}"


def conditions(filters: Filters) -> tuple[Sequence[str], dict[str, Any]]:
    """SQL conditions over `memories m LEFT JOIN sources s` as psycopg takes them, and their values."""
    clauses: list[str] = []
    values: dict[str, Any] = {}
    if filters.kinds:
        clauses.append("m.kind = ANY(%(kinds)s::text[])")
        values["kinds"] = list(filters.kinds)
    if filters.source:
        clauses.append("s.uri ~ %(source_pattern)s")
        values["source_pattern"] = glob_pattern(filters.source)
    if filters.tags:
        clauses.append("m.tags @> %(tags)s::text[]")
        values["tags"] = list(filters.tags)
    if filters.since:
        clauses.append("coalesce(m.occurred_at, m.created_at) >= %(since)s")
        values["since"] = in_utc(filters.since)
    if filters.until:
        clauses.append("coalesce(m.occurred_at, m.created_at) < %(until)s")
        values["until"] = in_utc(filters.until)
    _add_judgement(filters, clauses, values)
    return clauses, values


def _add_judgement(filters: Filters, clauses: list[str], values: dict[str, Any]) -> None:
    for column, wanted in (("task_type", filters.task_types), ("verdict", filters.verdicts)):
        if wanted:
            clauses.append(OBSERVED.format(column=column))
            values[f"{column}s"] = list(wanted)
    for name, clause in RANGES.items():
        if getattr(filters, name) is not None:
            clauses.append(clause)
            values[name] = getattr(filters, name)


def glob_pattern(glob: str) -> str:
    """The regular expression, as Postgres reads it, of a glob over paths."""
    pieces = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/?|\*|\?)", glob.lstrip("/"))
    body = "".join("(.*/)?" if part == "**/" else pieces.get(part) or re.escape(part) for part in parts)
    return f"(^|/){body}$"
