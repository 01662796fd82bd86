"""The SQL that reads memories: one, a page, neighbours, values to filter by, those of a run, those to review."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from app.db.session import Row, Session
from app.memories.gate import Given
from app.memories.memory import Memory, StoredObservation
from app.memories.store import COLUMNS, JOINED

LIVE = "m.workspace_id = %(workspace_id)s AND m.valid_until IS NULL"
SHOWN = f"{JOINED} LEFT JOIN observations o ON o.workspace_id = m.workspace_id AND o.memory_id = m.memory_id"
SHOWN_COLUMNS = f"""{COLUMNS},
    CASE WHEN o.memory_id IS NOT NULL THEN jsonb_build_object(
        'task', o.task, 'task_type', o.task_type, 'narrative', o.narrative, 'facts', o.facts,
        'output_path', o.output_path, 'verdict', o.verdict, 'compressor', o.compressor, 'model', o.model,
        'superseded_by', o.superseded_by
    ) END AS observation
"""
"""All columns of a memory as people see it; COLUMNS are those that a recall returns."""

GET = f"SELECT {SHOWN_COLUMNS} FROM {SHOWN} WHERE m.workspace_id = %(workspace_id)s AND m.memory_id = %(memory_id)s"  # noqa: S608 - constants

SORT_KEYS = {
    ("created", "desc"): "m.created_at",
    ("created", "asc"): "m.created_at",
    ("occurred", "desc"): "coalesce(m.occurred_at, m.created_at)",
    ("occurred", "asc"): "coalesce(m.occurred_at, m.created_at)",
    # Unjudged memories come last either way.
    ("score", "desc"): "coalesce(m.final_score, -1)",
    ("score", "asc"): "coalesce(m.final_score, 11)",
    ("quality", "desc"): "m.quality::real",
    ("quality", "asc"): "m.quality::real",
}
SORT_TYPES = {"created": "timestamptz", "occurred": "timestamptz", "score": "real", "quality": "real"}
MOST_COUNTED = 10_001

FEW_TAGGED = 1_000
"""Memories that a list looks up by their tag; of more it finds enough on its way through the workspace."""
# Row-level security keeps the index of tags from the statement of a session: this function reads it.
TAGGED = "SELECT priors_tagged(%(tags)s::text[], %(most)s)"

NEIGHBOURS = f"""
SELECT {SHOWN_COLUMNS} FROM {SHOWN} JOIN memories c ON c.workspace_id = m.workspace_id AND c.source_id = m.source_id
WHERE c.workspace_id = %(workspace_id)s AND c.memory_id = %(memory_id)s AND m.memory_id <> c.memory_id
    AND m.valid_until IS NULL
    AND m.ordinal BETWEEN c.ordinal::bigint - %(distance)s AND c.ordinal::bigint + %(distance)s
ORDER BY m.ordinal, m.memory_id LIMIT %(limit)s
"""  # noqa: S608 - constants

FACETS = """
WITH live AS MATERIALIZED (
    SELECT m.workspace_id, m.memory_id, m.kind, m.tags FROM memories m
    WHERE m.workspace_id = %(workspace_id)s AND m.valid_until IS NULL
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
"""

MOST_GIVEN = 500
"""Memories of one run that are looked at; a run is given a few dozen."""
# What a run itself wrote and was given back is no echo: sent again it is known, corrected it is news.
GIVEN = """
SELECT given.run_id, m.memory_id, m.title, m.body
FROM (
    SELECT r.run_id, h.memory_id, row_number() OVER (PARTITION BY r.run_id ORDER BY min(h.rank), h.memory_id) AS place
    FROM recalls r JOIN recall_hits h USING (workspace_id, recall_id)
    WHERE r.workspace_id = %(workspace_id)s AND r.run_id = ANY(%(run_ids)s::text[])
    GROUP BY r.run_id, h.memory_id
) AS given JOIN memories m ON m.workspace_id = %(workspace_id)s AND m.memory_id = given.memory_id
WHERE given.place <= %(limit)s AND m.run_id IS DISTINCT FROM given.run_id
ORDER BY given.run_id, m.memory_id
"""

OWN = "m.workspace_id = %(workspace_id)s"
RETIRED = f"{OWN} AND m.retired_as = %(reason)s AND m.body <> ''"
LOW = f"""{OWN} AND m.valid_until IS NULL AND m.quality < 0
    AND (m.quality <= %(quality)s OR m.final_score < %(final_score)s)"""


async def get(session: Session, memory_id: UUID) -> Memory | None:
    """Returns a memory, live or retired."""
    row = await session.row(GET, {"memory_id": memory_id})
    return None if row is None else memory_of(row)


async def page(
    session: Session,
    *,
    clauses: Sequence[str],
    values: Mapping[str, Any],
    order: tuple[str, str],
    after: tuple[Any, UUID] | None,
    limit: int,
) -> list[tuple[Memory, Any]]:
    """Returns live memories in an order, after the place that `after` names; each with its value in that order.

    The clauses and values are those of `filters.conditions`.
    """
    name, direction = order
    key, least = SORT_KEYS[order], ">" if direction == "asc" else "<"
    given = {**values, "limit": limit}
    conditions = [LIVE, *clauses]
    if after is not None:
        conditions.append(f"({key}, m.memory_id) {least} (%(after)s::{SORT_TYPES[name]}, %(after_id)s)")
        given |= {"after": after[0], "after_id": after[1]}
    statement = (
        f"SELECT {SHOWN_COLUMNS}, {key} AS place FROM {SHOWN} WHERE {' AND '.join(conditions)}"  # noqa: S608 - constants
        f" ORDER BY {key} {direction}, m.memory_id {direction} LIMIT %(limit)s"
    )
    return [(memory_of(row), row.place) for row in await session.rows(statement, given)]


async def few_tagged(session: Session, tags: Sequence[str]) -> list[UUID] | None:
    """Returns the memories that have all these tags; None where there are more than FEW_TAGGED."""
    tagged = await session.column(TAGGED, {"tags": list(tags), "most": FEW_TAGGED + 1})
    return tagged if len(tagged) <= FEW_TAGGED else None


async def count(session: Session, *, clauses: Sequence[str], values: Mapping[str, Any]) -> int:
    """Returns how many live memories meet the conditions, counted up to MOST_COUNTED."""
    statement = (
        f"SELECT count(*) FROM (SELECT 1 FROM {JOINED} WHERE {' AND '.join([LIVE, *clauses])}"  # noqa: S608 - constants
        " LIMIT %(limit)s) AS met"
    )
    return int(await session.value(statement, {**values, "limit": MOST_COUNTED}))


async def neighbours(session: Session, memory_id: UUID, *, distance: int, limit: int) -> list[Memory]:
    """Returns the live memories around one in its source, in their order."""
    values = {"memory_id": memory_id, "distance": distance, "limit": limit}
    return [memory_of(row) for row in await session.rows(NEIGHBOURS, values)]


async def facets(session: Session, *, limit: int) -> dict[str, list[tuple[str, int]]]:
    """Returns the values of each facet of live memories, with how many have them, the most frequent first."""
    found: dict[str, list[tuple[str, int]]] = {}
    for row in await session.rows(FACETS, {"limit": limit}):
        found.setdefault(row.facet, []).append((row.value, row.n))
    return found


async def given_to(session: Session, run_ids: Iterable[str]) -> dict[str, list[Given]]:
    """Returns the memories of others that recalls gave to these runs, by run."""
    values = {"run_ids": sorted(set(run_ids)), "limit": MOST_GIVEN}
    found: dict[str, list[Given]] = defaultdict(list)
    for row in await session.rows(GIVEN, values):
        found[row.run_id].append(Given(memory_id=row.memory_id, text=f"{row.title}\n{row.body}"))
    return found


async def retired_as(session: Session, reason: str, limit: int) -> list[Memory]:
    """Returns memories that are retired for this reason, the latest first."""
    statement = (
        f"SELECT {SHOWN_COLUMNS} FROM {SHOWN} WHERE {RETIRED}"  # noqa: S608 - constants
        " ORDER BY m.valid_until DESC, m.memory_id LIMIT %(limit)s"
    )
    return [memory_of(row) for row in await session.rows(statement, {"reason": reason, "limit": limit})]


async def count_retired_as(session: Session, reason: str) -> int:
    """Returns how many `retired_as` would return without a limit."""
    return int(await session.value(f"SELECT count(*) FROM memories m WHERE {RETIRED}", {"reason": reason}))  # noqa: S608 - constants


async def low(session: Session, *, quality: int, final_score: float, limit: int) -> list[Memory]:
    """Returns live memories of at most this quality, or below this score and rated down; the worst first."""
    statement = (
        f"SELECT {SHOWN_COLUMNS} FROM {SHOWN} WHERE {LOW}"  # noqa: S608 - constants
        " ORDER BY m.quality, m.final_score NULLS LAST, m.memory_id LIMIT %(limit)s"
    )
    values = {"quality": quality, "final_score": final_score, "limit": limit}
    return [memory_of(row) for row in await session.rows(statement, values)]


async def count_low(session: Session, *, quality: int, final_score: float) -> int:
    """Returns how many `low` would return without a limit."""
    values = {"quality": quality, "final_score": final_score}
    return int(await session.value(f"SELECT count(*) FROM memories m WHERE {LOW}", values))  # noqa: S608 - constants


def memory_of(row: Row) -> Memory:
    """Returns the value of a row that has SHOWN_COLUMNS."""
    plain = {name: getattr(row, name) for name in Memory.__slots__ if name not in {"tags", "observation"}}
    observation = None
    if row.observation is not None:
        successor = row.observation["superseded_by"]
        changed = {"facts": tuple(row.observation["facts"]), "superseded_by": successor and UUID(successor)}
        observation = StoredObservation(**{**row.observation, **changed})
    return Memory(**plain, tags=tuple(row.tags), observation=observation)
