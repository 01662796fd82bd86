"""Conditions that select memories, the orders of lists, and the SQL that lists and counts what meets them."""

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias
from uuid import UUID

from msgspec import Meta, Struct, structs

from app.errors import InvalidInput
from app.foundation.db.session import Session
from app.foundation.safety.secrets import masked_values
from app.foundation.text.data import check_value
from app.storage.memories.memory import (
    DELETED,
    QUARANTINED,
    SUPERSEDED,
    URI_LIMIT,
    Kind,
    Memory,
    Name,
    Quality,
    Score,
    Tags,
    in_utc,
)
from app.storage.memories.store import HAPPENED, JOINED, SHOWN, SHOWN_COLUMNS, SUSPECT, memory_of

# Row-level security keeps COALESCE, which it does not know as safe, from every index; CASE is safe.
_MOMENT = "CASE WHEN m.occurred_at IS NULL THEN m.created_at ELSE m.occurred_at END"
_RATED_UP, _RATED_DOWN = "m.quality > 0", "m.quality < 0"
"""The conditions that the index of rated memories knows."""


class _Part(NamedTuple):
    """Memories that stand together in an order, and that an index has in this order."""

    key: str
    """The expression by which they are sorted."""
    kind: str
    """Its type."""
    condition: str = ""
    same: float | None = None
    """The value that all of them have; they are sorted by their ids alone."""

    def sorted_by(self, direction: str) -> str:
        """Returns the columns by which they are sorted, each with the direction."""
        keys = ["m.memory_id"] if self.same is not None else [self.key, "m.memory_id"]
        return ", ".join(f"{key} {direction}" for key in keys)

    def following(self, direction: str, after: tuple[Any, UUID] | None) -> str | None:
        """Returns the condition of those that follow a place; "" if all of them do, None if none does."""
        if after is None:
            return ""
        sign = ">" if direction == "asc" else "<"
        if self.same is None:
            return f"({self.key}, m.memory_id) {sign} (%(after)s::{self.kind}, %(after_id)s)"
        if self.same == after[0]:
            return f"m.memory_id {sign} %(after_id)s"
        return "" if (self.same > after[0]) == (direction == "asc") else None


_SCORED = _Part("m.final_score", "real", "m.final_score IS NOT NULL")
_UP, _DOWN = (_Part("m.quality", "float8::smallint", condition) for condition in (_RATED_UP, _RATED_DOWN))
_UNRATED = _Part("m.quality", "smallint", "m.quality = 0", same=0)
_UNJUDGED_BELOW, _UNJUDGED_ABOVE = (
    _Part(f"{score}::real", "real", "m.final_score IS NULL", same=score) for score in (-1, 11)
)
"""Unjudged memories come last in both directions."""
_WHOLE = {
    "created": _Part("m.created_at", "timestamptz"),
    "occurred": _Part(_MOMENT, "timestamptz"),
    "retired": _Part("m.valid_until", "timestamptz"),
    # By quality, and those of one quality by score; unjudged ones come last.
    "worst": _Part("(m.quality + CASE WHEN m.final_score IS NULL THEN 0.99 ELSE m.final_score / 20 END)::real", "real"),
}
_ORDERS = {(sort, direction): (part,) for sort, part in _WHOLE.items() for direction in ("desc", "asc")} | {
    ("score", "desc"): (_SCORED, _UNJUDGED_BELOW),
    ("score", "asc"): (_SCORED, _UNJUDGED_ABOVE),
    ("quality", "desc"): (_UP, _UNRATED, _DOWN),
    ("quality", "asc"): (_DOWN, _UNRATED, _UP),
}
"""The parts of each order, one after the other."""


GLOB_LIMIT = 500
_LIST_LIMIT = 64
Names: TypeAlias = Annotated[tuple[Name, ...], Meta(max_length=_LIST_LIMIT)]

_OBSERVED = """EXISTS (
    SELECT 1 FROM observations seen WHERE seen.workspace_id = %(workspace_id)s AND seen.memory_id = m.memory_id
        AND seen.{column} = ANY(%({column}s)s::text[])
)"""
_CLAUSES = {
    "kinds": "m.kind = ANY(%(kinds)s::text[])",
    "source": "s.uri ~ %(source)s",
    "session": "s.kind = 'session' AND s.uri = %(session)s AND s.retired_at IS NULL",
    "tags": "m.tags @> %(tags)s::text[]",
    # The moment that has an index comes first: a memory with a moment has the same one there.
    "since": f"({_MOMENT} >= %(since)s AND {HAPPENED} >= %(since)s)",
    "until": f"({_MOMENT} < %(until)s AND {HAPPENED} < %(until)s)",
    "task_types": _OBSERVED.format(column="task_type"),
    "verdicts": _OBSERVED.format(column="verdict"),
    "min_quality": "m.quality >= %(min_quality)s::int",
    "max_quality": "m.quality <= %(max_quality)s::int",
    "min_score": "m.final_score >= %(min_score)s::real",
    "max_score": "m.final_score <= %(max_score)s::real",
}
"""The SQL of each filter, by its name."""
OF_USERS = "m.user_id = ANY(%(users)s::text[])"
"""The condition of memories that belong to these users; "" stands for nobody. Row-level security has the same effect:
it is stated where many memories are read, for the sake of its index."""

LIVE = "m.workspace_id = %(workspace_id)s AND m.valid_until IS NULL"
_RETIRED = "m.workspace_id = %(workspace_id)s AND m.retired_as = '{}' AND m.body <> ''"
LOW_QUALITY, LOW_SCORE = -2, 6.0
"""A memory of at most this quality should be pruned, and one below this score with a quality below 0."""
State: TypeAlias = Literal["live", "suspect", "prune", "quarantined", "deleted", "superseded"]
STATES: Mapping[State, str] = {
    "live": LIVE,
    "suspect": f"{LIVE} AND {SUSPECT}",
    "prune": f"{LIVE} AND {_RATED_DOWN} AND (m.quality <= {LOW_QUALITY} OR m.final_score < {LOW_SCORE})",
    "quarantined": _RETIRED.format(QUARANTINED),
    "deleted": _RETIRED.format(DELETED),
    "superseded": _RETIRED.format(SUPERSEDED),
}
"""The condition of the memories of each state. Suspect ones and those to prune are live, too."""
_COUNTS = (
    f"(SELECT count(*) FROM memories m WHERE {condition}) AS {state}"  # noqa: S608 - constants
    for state, condition in STATES.items()
    if state != "live"
)
_TO_REVIEW = f"SELECT {', '.join(_COUNTS)}"

_UNSEEN = "m.memory_id <> ALL(%(seen)s::uuid[])"

_MOST_COUNTED = 10_001

FEW = 1_000
"""If at most this many memories meet a condition that has an index, a list looks them up by it; else it reads the
workspace in the list's order until it has enough."""
# Row-level security keeps the index of tags from the statement of a session: this function reads it.
_TAGGED = f"SELECT priors_tagged(%(tags)s::text[], {FEW} + 1)"
# A generic plan knows no values, and would read all memories. The order leaves it only the index of the condition: with
# `=` in place of `>=` and `<=` the primary key would have the same order.
_OF_KINDS = f"""
SELECT few.memory_id FROM unnest(%(kinds)s::text[]) AS wanted(kind) CROSS JOIN LATERAL (
    SELECT m.memory_id FROM memories m WHERE {LIVE} AND m.kind >= wanted.kind AND m.kind <= wanted.kind
    ORDER BY m.kind, m.memory_id LIMIT {FEW} + 1
) AS few LIMIT {FEW} + 1
"""  # noqa: S608 - constants
_IN_RANGE = f"""
SELECT m.memory_id FROM memories m WHERE {LIVE} AND {{conditions}} ORDER BY {{key}}, m.memory_id LIMIT {FEW} + 1
"""  # noqa: S608 - constants
_RANGES = {("since", "until"): _MOMENT, ("min_score", "max_score"): "m.final_score"}

FACETS_OF = 100_000
"""The newest memories, whose facets are counted: 100,000 take 0.2 s, three million 10 s."""
FACETS = f"""
WITH live AS MATERIALIZED (
    SELECT m.workspace_id, m.memory_id, m.kind, m.tags FROM memories m
    WHERE {LIVE} ORDER BY m.created_at DESC, m.memory_id DESC LIMIT {FACETS_OF}
), seen AS MATERIALIZED (
    SELECT o.task_type, o.verdict FROM observations o JOIN live USING (workspace_id, memory_id)
    WHERE o.workspace_id = %(workspace_id)s
), counted AS (
    SELECT 'kinds' AS facet, kind AS value, count(*) AS n FROM live GROUP BY kind
    UNION ALL SELECT 'task_types', task_type, count(*) FROM seen WHERE task_type <> '' GROUP BY task_type
    UNION ALL SELECT 'verdicts', verdict, count(*) FROM seen WHERE verdict <> '' GROUP BY verdict
    UNION ALL SELECT 'tags', tag, count(*) FROM live CROSS JOIN unnest(tags) AS tag GROUP BY tag
), ranked AS (
    SELECT facet, value, n, row_number() OVER (PARTITION BY facet ORDER BY n DESC, value) AS place FROM counted
)
SELECT facet, value, n FROM ranked WHERE place <= %(limit)s ORDER BY facet, place
"""  # noqa: S608 - constants

_NEIGHBOURS = f"""
SELECT c.memory_id AS center, {SHOWN_COLUMNS}
FROM {SHOWN} JOIN memories c ON c.workspace_id = %(workspace_id)s AND c.source_id = m.source_id
WHERE {LIVE} AND c.memory_id = ANY(%(ids)s::uuid[]) AND m.memory_id <> c.memory_id
    AND m.ordinal BETWEEN c.ordinal::bigint - %(distance)s AND c.ordinal::bigint + %(distance)s
ORDER BY m.ordinal, m.memory_id LIMIT %(limit)s
"""  # noqa: S608 - constants

Conditions: TypeAlias = tuple[Sequence[str], dict[str, Any]]
"""SQL over `memories m LEFT JOIN sources s`, and its values."""


class Filters(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Conditions that a memory must meet, all of them; an empty one excludes nothing."""

    kinds: tuple[Kind, ...] = ()
    source: Annotated[
        str,
        Meta(
            max_length=GLOB_LIMIT,
            description="glob of the source's path from any folder on: `*` within a name, `**` across folders, `?` one"
            " character",
        ),
    ] = ""
    session: Annotated[str, Meta(max_length=URI_LIMIT, description="id of a session: only its turns")] = ""
    tags: Annotated[Tags, Meta(description="all of them")] = ()
    since: Annotated[
        datetime | None,
        Meta(
            description="the earliest moment, inclusive: when it occurred, or was stored if that is unknown; a chunk of"
            " an undated report has none"
        ),
    ] = None
    until: Annotated[datetime | None, Meta(description="the latest moment, exclusive")] = None
    task_types: Names = ()
    verdicts: Names = ()
    min_quality: Quality | None = None
    max_quality: Quality | None = None
    min_score: Score | None = None
    """A memory without a score does not meet it."""
    max_score: Score | None = None

    @property
    def given(self) -> dict[str, Any]:
        """The filters that are not empty, by name."""
        values = structs.asdict(self)
        return {name: value for name, value in values.items() if value not in ((), "", None)}

    def __bool__(self) -> bool:
        """Returns True if anything is filtered."""
        return bool(self.given)


def check(filters: Filters, *, within: str = "filters") -> None:
    """Checks that each condition is valid, and that no two exclude all memories.

    Raises:
        InvalidInput: a condition is not valid; `within` precedes its name.
    """
    check_value(filters, within)
    before = f"{within}." if within else ""
    if filters.since and filters.until and in_utc(filters.since) >= in_utc(filters.until):
        raise InvalidInput(f"{before}until", "must be after since")
    for name in ("quality", "score"):
        low, high = (getattr(filters, f"{end}_{name}") for end in ("min", "max"))
        if low is not None and high is not None and low > high:
            raise InvalidInput(f"{before}max_{name}", f"must not be below min_{name}")


def conditions(filters: Filters) -> Conditions:
    """Returns the SQL of the filters, and its values."""
    given = filters.given
    if "source" in given:
        given["source"] = glob_pattern(given["source"])
    if "tags" in given:
        # A tag with a secret was masked when it was stored.
        given["tags"] = masked_values(given["tags"])
    return [_clause(name, value) for name, value in given.items()], {
        name: _as_value(value) for name, value in given.items()
    }


def _clause(name: str, value: Any) -> str:  # noqa: ANN401 - of any filter
    if name == "min_quality" and value > 0:
        return f"({_RATED_UP} AND {_CLAUSES[name]})"
    if name == "max_quality" and value < 0:
        return f"({_RATED_DOWN} AND {_CLAUSES[name]})"
    return _CLAUSES[name]


def _as_value(value: Any) -> Any:  # noqa: ANN401 - of any filter
    match value:
        case datetime():
            return in_utc(value)
        case float():
            return as_real(value)
    return value


def as_real(number: float) -> float:
    """Returns the number of 32 bits next to this one, as a `real` column holds it: Postgres refuses a smaller one."""
    (nearest,) = struct.unpack("f", struct.pack("f", number))
    return float(nearest)


def glob_pattern(glob: str) -> str:
    """Returns the regular expression of Postgres for a glob over paths."""
    pieces = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/?|\*|\?)", glob.lstrip("/"))
    body = "".join("(.*/)?" if part == "**/" else pieces.get(part) or re.escape(part) for part in parts)
    return f"(^|/){body}$"


async def conditions_of_list(
    session: Session, filters: Filters, source_id: UUID | None, state: State = "live"
) -> Conditions:
    """Returns the conditions of a list of memories of a state, with `source_id` of that source only."""
    clauses, values = conditions(filters)
    clauses = [STATES[state], *clauses]
    if source_id is not None:
        clauses.append("m.source_id = %(source_id)s")
        values["source_id"] = source_id
    for statement in _lookups(filters) if LIVE in STATES[state] else ():
        found = await session.column(statement, values)
        if len(found) <= FEW:
            clauses.append("m.memory_id = ANY(%(few)s::uuid[])")
            values["few"] = found
            break
    return clauses, values


def _lookups(filters: Filters) -> Iterator[str]:
    """Yields the statements that look up, by an index, the first memories that meet one of the conditions."""
    if filters.tags:
        yield _TAGGED
    for names, key in _RANGES.items():
        if own := [_CLAUSES[name] for name in names if name in filters.given]:
            yield _IN_RANGE.format(conditions=" AND ".join(own), key=key)
    if filters.kinds:
        yield _OF_KINDS


async def page(
    session: Session, met: Conditions, *, order: tuple[str, str], after: tuple[Any, UUID] | None, limit: int
) -> list[tuple[Memory, Any]]:
    """Returns the memories that meet the conditions, sorted, each with the value by which it is sorted.

    `after` is the value and id of the memory before the first one. A page over several parts of the order takes several
    statements, and each sees what was written before it. A memory that is rated meanwhile may be missing, as it may be
    between two pages, but it does not stand in a page twice.
    """
    direction, (clauses, values) = order[1], met
    if after is not None:
        values = {**values, "after": after[0], "after_id": after[1]}
    found: list[tuple[Memory, Any]] = []
    for part in _ORDERS[order]:
        following = part.following(direction, after)
        if len(found) < limit and following is not None:
            others = _UNSEEN if found else ""
            conditions = " AND ".join(clause for clause in (*clauses, part.condition, following, others) if clause)
            statement = (
                f"SELECT {SHOWN_COLUMNS}, {part.key} AS place FROM {SHOWN} WHERE {conditions}"  # noqa: S608 - constants
                f" ORDER BY {part.sorted_by(direction)} LIMIT %(limit)s"
            )
            seen = {"seen": [memory.memory_id for memory, _ in found]} if found else {}
            rows = await session.rows(statement, {**values, **seen, "limit": limit - len(found)})
            found += [(memory_of(row), row.place) for row in rows]
    return found


async def count(session: Session, met: Conditions) -> int:
    """Returns how many memories meet the conditions, counted up to _MOST_COUNTED."""
    clauses, values = met
    statement = f"SELECT count(*) FROM (SELECT 1 FROM {JOINED} WHERE {' AND '.join(clauses)} LIMIT %(limit)s) AS met"  # noqa: S608 - constants
    return int(await session.value(statement, {**values, "limit": _MOST_COUNTED}))


class Facet(Struct, frozen=True):
    """A value that memories can be filtered by, and how many live ones have it."""

    value: str
    count: int


async def facets(session: Session, *, limit: int) -> dict[str, list[Facet]]:
    """Returns the values of each facet of the newest FACETS_OF live memories; the most frequent come first."""
    found: dict[str, list[Facet]] = {}
    for row in await session.rows(FACETS, {"limit": limit}):
        found.setdefault(row.facet, []).append(Facet(row.value, row.n))
    return found


async def neighbours(session: Session, ids: Sequence[UUID], *, distance: int, limit: int) -> dict[UUID, list[Memory]]:
    """Returns, for each of these memories, the live memories around it in its source, in their order."""
    found: dict[UUID, list[Memory]] = {memory_id: [] for memory_id in ids}
    values = {"ids": ids, "distance": distance, "limit": limit * len(found)}
    for row in await session.rows(_NEIGHBOURS, values):
        found[row.center].append(memory_of(row))
    return found


async def count_to_review(session: Session) -> Mapping[str, int]:
    """Returns how many memories people should review, by their state."""
    return dict((await session.one(_TO_REVIEW))._asdict())
