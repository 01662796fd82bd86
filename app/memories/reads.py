"""The SQL that shows memories to people: one, a page, what lives around one, what there is to filter by."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

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
"""What is shown of a memory: all that it has, where COLUMNS are what a recall gives."""


async def get(connection: AsyncConnection, workspace_id: int, memory_id: UUID) -> Memory | None:
    """One memory, live or retired."""
    statement = text(f"SELECT {SHOWN_COLUMNS} FROM {SHOWN} WHERE m.workspace_id = :workspace_id AND m.memory_id = :id")  # noqa: S608 - constants
    row = (await connection.execute(statement, {"workspace_id": workspace_id, "id": memory_id})).one_or_none()
    return None if row is None else memory_of(row)


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


async def page(
    connection: AsyncConnection,
    workspace_id: int,
    *,
    clauses: Sequence[str],
    values: Mapping[str, Any],
    order: tuple[str, str],
    after: tuple[Any, UUID] | None,
    limit: int,
) -> list[tuple[Memory, Any]]:
    """Live memories in an order, after the place that `after` names; each with its value in that order.

    The clauses and values are those of `filters.conditions`.
    """
    name, direction = order
    key, least = SORT_KEYS[order], ">" if direction == "asc" else "<"
    given = {**values, "workspace_id": workspace_id, "limit": limit}
    conditions = [LIVE, *clauses]
    if after is not None:
        conditions.append(f"({key}, m.memory_id) {least} (%(after)s::{SORT_TYPES[name]}, %(after_id)s)")
        given |= {"after": after[0], "after_id": after[1]}
    statement = (
        f"SELECT {SHOWN_COLUMNS}, {key} AS place FROM {SHOWN} WHERE {' AND '.join(conditions)}"  # noqa: S608 - constants
        f" ORDER BY {key} {direction}, m.memory_id {direction} LIMIT %(limit)s"
    )
    return [(memory_of(row), row.place) for row in await connection.exec_driver_sql(statement, given)]


async def count(
    connection: AsyncConnection, workspace_id: int, *, clauses: Sequence[str], values: Mapping[str, Any]
) -> int:
    """How many live memories meet the conditions, counted up to MOST_COUNTED."""
    statement = (
        f"SELECT count(*) FROM (SELECT 1 FROM {JOINED} WHERE {' AND '.join([LIVE, *clauses])}"  # noqa: S608 - constants
        " LIMIT %(limit)s) AS met"
    )
    given = {**values, "workspace_id": workspace_id, "limit": MOST_COUNTED}
    return int((await connection.exec_driver_sql(statement, given)).scalar_one())


NEIGHBOURS = text(f"""
SELECT {SHOWN_COLUMNS} FROM {SHOWN} JOIN memories c ON c.workspace_id = m.workspace_id AND c.source_id = m.source_id
WHERE c.workspace_id = :workspace_id AND c.memory_id = :memory_id AND m.memory_id <> c.memory_id
    AND m.valid_until IS NULL
    AND m.ordinal BETWEEN CAST(c.ordinal AS bigint) - :distance AND CAST(c.ordinal AS bigint) + :distance
ORDER BY m.ordinal, m.memory_id LIMIT :limit
""")  # noqa: S608 - constants


async def neighbours(
    connection: AsyncConnection, workspace_id: int, memory_id: UUID, *, distance: int, limit: int
) -> list[Memory]:
    """The live memories around one in its source, in their order."""
    values = {"workspace_id": workspace_id, "memory_id": memory_id, "distance": distance, "limit": limit}
    return [memory_of(row) for row in await connection.execute(NEIGHBOURS, values)]


FACETS = text("""
WITH live AS MATERIALIZED (
    SELECT m.workspace_id, m.memory_id, m.kind, m.tags FROM memories m
    WHERE m.workspace_id = :workspace_id AND m.valid_until IS NULL
), seen AS MATERIALIZED (
    SELECT o.task_type, o.verdict FROM observations o JOIN live USING (workspace_id, memory_id)
    WHERE o.workspace_id = :workspace_id
), counted AS (
    SELECT 'kinds' AS facet, kind AS value, count(*) AS n FROM live GROUP BY kind
    UNION ALL SELECT 'task_types', task_type, count(*) FROM seen WHERE task_type <> '' GROUP BY task_type
    UNION ALL SELECT 'verdicts', verdict, count(*) FROM seen WHERE verdict <> '' GROUP BY verdict
    UNION ALL SELECT 'tags', tag, count(*) FROM live CROSS JOIN unnest(tags) AS tag GROUP BY tag
), ranked AS (
    SELECT facet, value, n, row_number() OVER (PARTITION BY facet ORDER BY n DESC, value) AS place FROM counted
)
SELECT facet, value, n FROM ranked WHERE place <= :limit ORDER BY facet, place
""")


async def facets(connection: AsyncConnection, workspace_id: int, *, limit: int) -> dict[str, list[tuple[str, int]]]:
    """The values of each facet of live memories, with how many have them, the most frequent first."""
    found: dict[str, list[tuple[str, int]]] = {}
    for row in await connection.execute(FACETS, {"workspace_id": workspace_id, "limit": limit}):
        found.setdefault(row.facet, []).append((row.value, row.n))
    return found


RETIRED = "m.retired_as = :reason AND m.body <> ''"
LOW = "m.valid_until IS NULL AND m.quality < 0 AND (m.quality <= :quality OR m.final_score < :final_score)"


async def count_retired_as(connection: AsyncConnection, workspace_id: int, reason: str) -> int:
    """How many `retired_as` would give without a limit."""
    statement = text(f"SELECT count(*) FROM memories m WHERE m.workspace_id = :workspace_id AND {RETIRED}")  # noqa: S608 - constants
    return int((await connection.execute(statement, {"workspace_id": workspace_id, "reason": reason})).scalar_one())


async def count_low(connection: AsyncConnection, workspace_id: int, *, quality: int, final_score: float) -> int:
    """How many `low` would give without a limit."""
    statement = text(f"SELECT count(*) FROM memories m WHERE m.workspace_id = :workspace_id AND {LOW}")  # noqa: S608 - constants
    values = {"workspace_id": workspace_id, "quality": quality, "final_score": final_score}
    return int((await connection.execute(statement, values)).scalar_one())


async def retired_as(connection: AsyncConnection, workspace_id: int, reason: str, limit: int) -> list[Memory]:
    """Memories that are retired for this reason, the latest first."""
    statement = text(
        f"SELECT {SHOWN_COLUMNS} FROM {SHOWN} WHERE m.workspace_id = :workspace_id AND {RETIRED}"  # noqa: S608 - constants
        " ORDER BY m.valid_until DESC, m.memory_id LIMIT :limit"
    )
    values = {"workspace_id": workspace_id, "reason": reason, "limit": limit}
    return [memory_of(row) for row in await connection.execute(statement, values)]


async def low(
    connection: AsyncConnection, workspace_id: int, *, quality: int, final_score: float, limit: int
) -> list[Memory]:
    """Live memories of at most this quality, or below this score and rated down; the worst first."""
    statement = text(
        f"SELECT {SHOWN_COLUMNS} FROM {SHOWN} WHERE m.workspace_id = :workspace_id AND {LOW}"  # noqa: S608 - constants
        " ORDER BY m.quality, m.final_score NULLS LAST, m.memory_id LIMIT :limit"
    )
    values = {"workspace_id": workspace_id, "quality": quality, "final_score": final_score, "limit": limit}
    return [memory_of(row) for row in await connection.execute(statement, values)]


def memory_of(row: Row[Any]) -> Memory:
    """The value of a row that has SHOWN_COLUMNS."""
    plain = {name: getattr(row, name) for name in Memory.__slots__ if name not in {"tags", "observation"}}
    observation = None
    if row.observation is not None:
        successor = row.observation["superseded_by"]
        changed = {"facts": tuple(row.observation["facts"]), "superseded_by": successor and UUID(successor)}
        observation = StoredObservation(**{**row.observation, **changed})
    return Memory(**plain, tags=tuple(row.tags), observation=observation)
