"""Which memories a recall may bring, and the SQL that says so."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.errors import InvalidInput
from app.memories.admission import unstorable
from app.memories.identity import in_utc
from app.memories.memory import KINDS

GLOB_LIMIT = 500
LIST_LIMIT = 64


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

    def __bool__(self) -> bool:
        """Whether anything is filtered."""
        return bool(self.kinds or self.source or self.tags or self.since or self.until)


def check(filters: Filters) -> None:
    """Raises InvalidInput where a condition can never be met, or not be asked."""
    for kind in filters.kinds:
        if kind not in KINDS:
            raise InvalidInput("filters.kinds", f"{kind!r} is not a kind; there are {', '.join(KINDS)}")
    if len(filters.tags) > LIST_LIMIT:
        raise InvalidInput("filters.tags", f"at most {LIST_LIMIT} are taken")
    if len(filters.source) > GLOB_LIMIT:
        raise InvalidInput("filters.source", f"has more than {GLOB_LIMIT} characters")
    _check_times(filters)
    for reason in unstorable({"filters.source": filters.source, "filters.tags": filters.tags}):
        field, _, message = reason.partition(": ")
        raise InvalidInput(field, message)


def _check_times(filters: Filters) -> None:
    for name in ("since", "until"):
        moment = getattr(filters, name)
        try:
            if moment is not None:
                in_utc(moment)
        except (OverflowError, ValueError):
            raise InvalidInput(f"filters.{name}", "is outside the years 1 to 9999") from None
    if filters.since and filters.until and in_utc(filters.since) >= in_utc(filters.until):
        raise InvalidInput("filters.until", "must be after filters.since")


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
    return clauses, values


def glob_pattern(glob: str) -> str:
    """The regular expression, as Postgres reads it, of a glob over paths."""
    pieces = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/?|\*|\?)", glob.lstrip("/"))
    body = "".join("(.*/)?" if part == "**/" else pieces.get(part) or re.escape(part) for part in parts)
    return f"(^|/){body}$"
