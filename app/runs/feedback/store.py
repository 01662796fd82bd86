"""The SQL of feedback: a log that is only ever appended to."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.index.vectors import StoredModel
from app.memories.memory import new_id
from app.runs.feedback.rating import Rating, replayed

# Ratings of one memory go one after the other; readers and other writers of it do not wait.
LOCK = text("""
SELECT quality FROM memories WHERE workspace_id = :workspace_id AND memory_id = :memory_id FOR NO KEY UPDATE
""")

APPEND = text("""
INSERT INTO feedback (
    workspace_id, feedback_id, memory_id, rating, undoes, comment, run_id, idempotency_key, created_at
)
VALUES (
    :workspace_id, :feedback_id, :memory_id, :rating, :undoes, :comment, :run_id, :idempotency_key,
    coalesce(CAST(:created_at AS timestamptz), clock_timestamp())
)
""")

SET_QUALITY = text("""
UPDATE memories SET quality = :quality WHERE workspace_id = :workspace_id AND memory_id = :memory_id
""")

RATINGS = """
SELECT f.feedback_id, f.memory_id, f.rating, f.comment, f.run_id, f.created_at, u.created_at AS undone_at
FROM feedback f LEFT JOIN feedback u ON u.workspace_id = f.workspace_id AND u.undoes = f.feedback_id
WHERE f.workspace_id = :workspace_id AND f.rating IS NOT NULL AND {condition}
ORDER BY f.position LIMIT :limit
"""

MEMORY_OF = text("""
SELECT memory_id FROM feedback
WHERE workspace_id = :workspace_id AND feedback_id = :feedback_id AND rating IS NOT NULL
""")

# Observations that people rated, with what made them and where they stand in the meaning of things. What made one is
# its maker's request that has led to it, or else that of another that says the same. A run's output made none of these,
# and stands for what was given with the run unless the run has replaced it since.
RATED_OBSERVATIONS = """
SELECT m.memory_id, m.title, o.task, o.task_type, o.narrative, o.facts, o.prompt, m.quality, c.request,
    CASE WHEN o.compressor = 'given' AND NOT r.output_replaced THEN r.output END AS output,
    r.output IS NOT NULL AS replaced, {vector} AS vector
FROM memories m JOIN observations o USING (workspace_id, memory_id)
LEFT JOIN runs r ON r.workspace_id = m.workspace_id AND r.run_id = m.run_id
LEFT JOIN LATERAL (
    SELECT request FROM compressions c
    WHERE c.workspace_id = m.workspace_id AND c.memory_id = m.memory_id AND c.outcome IN ('stored', 'joined')
    ORDER BY coalesce(c.observation_id = m.memory_id OR c.run_id = m.run_id, false) DESC, c.created_at LIMIT 1
) AS c ON true
{join}
WHERE m.workspace_id = :workspace_id AND EXISTS (
    SELECT 1 FROM feedback f WHERE f.workspace_id = m.workspace_id AND f.memory_id = m.memory_id
        AND f.rating IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM feedback u WHERE u.workspace_id = f.workspace_id AND u.undoes = f.feedback_id)
)
ORDER BY m.memory_id DESC LIMIT :limit
"""

EXPORT = text("""
SELECT f.position, f.feedback_id, f.memory_id, m.kind, m.title, m.body, f.rating, f.comment, f.run_id, f.created_at,
    m.quality, m.final_score
FROM feedback f JOIN memories m USING (workspace_id, memory_id)
WHERE f.workspace_id = :workspace_id AND f.rating IS NOT NULL AND f.position > :after
    AND NOT EXISTS (SELECT 1 FROM feedback u WHERE u.workspace_id = f.workspace_id AND u.undoes = f.feedback_id)
ORDER BY f.position LIMIT :limit
""")

KEYED = text("""
SELECT idempotency_key, rating FROM feedback
WHERE workspace_id = :workspace_id AND memory_id = :memory_id AND rating IS NOT NULL
    AND starts_with(idempotency_key, :prefix)
ORDER BY position
""")


async def lock(connection: AsyncConnection, workspace_id: int, memory_id: UUID) -> bool:
    """Whether the memory exists; nobody else rates it until this transaction ends."""
    values = {"workspace_id": workspace_id, "memory_id": memory_id}
    return (await connection.execute(LOCK, values)).one_or_none() is not None


async def append(
    connection: AsyncConnection,
    workspace_id: int,
    memory_id: UUID,
    *,
    rating: int | None = None,
    undoes: UUID | None = None,
    comment: str = "",
    run_id: str | None = None,
    idempotency_key: str | None = None,
    created_at: datetime | None = None,
) -> UUID:
    """Add an entry to the log: a rating, or the undoing of one. Its id. `created_at` is for entries of an older log."""
    feedback_id = new_id()
    values = {
        "workspace_id": workspace_id,
        "feedback_id": feedback_id,
        "memory_id": memory_id,
        "rating": rating,
        "undoes": undoes,
        "comment": comment,
        "run_id": run_id,
        "idempotency_key": idempotency_key,
        "created_at": created_at,
    }
    await connection.execute(APPEND, values)
    return feedback_id


async def ratings_of(connection: AsyncConnection, workspace_id: int, memory_id: UUID) -> list[Rating]:
    """A memory's ratings in their order, the undone ones included."""
    values = {"workspace_id": workspace_id, "memory_id": memory_id, "limit": None}
    rows = await connection.execute(text(RATINGS.format(condition="f.memory_id = :memory_id")), values)
    return [_rating(row) for row in rows]


async def by_key(connection: AsyncConnection, workspace_id: int, key: str) -> Rating | None:
    """The rating that was sent under this idempotency key."""
    values = {"workspace_id": workspace_id, "key": key, "limit": 1}
    rows = await connection.execute(text(RATINGS.format(condition="f.idempotency_key = :key")), values)
    row = rows.one_or_none()
    return None if row is None else _rating(row)


async def memory_of(connection: AsyncConnection, workspace_id: int, feedback_id: UUID) -> UUID | None:
    """The memory that a rating is of."""
    values = {"workspace_id": workspace_id, "feedback_id": feedback_id}
    return (await connection.execute(MEMORY_OF, values)).scalar_one_or_none()


async def set_quality(connection: AsyncConnection, workspace_id: int, memory_id: UUID) -> int:
    """Make the memory's quality what its log replays to."""
    ratings = await ratings_of(connection, workspace_id, memory_id)
    quality = replayed([rating.rating for rating in ratings if rating.undone_at is None])
    values = {"workspace_id": workspace_id, "memory_id": memory_id, "quality": quality}
    await connection.execute(SET_QUALITY, values)
    return quality


def _rating(row: Row[Any]) -> Rating:
    return Rating(**row._mapping)  # noqa: SLF001 - SQLAlchemy's documented name for it


async def standing(connection: AsyncConnection, workspace_id: int, *, after: int, limit: int) -> Sequence[Row[Any]]:
    """Ratings that stand, in their order after this position, each with its memory's text."""
    values = {"workspace_id": workspace_id, "after": after, "limit": limit}
    return (await connection.execute(EXPORT, values)).all()


async def rated_observations(
    connection: AsyncConnection, workspace_id: int, model: StoredModel | None, *, limit: int
) -> Sequence[Row[Any]]:
    """Observations with a rating that stands, each with its prompt, request, vector, and its run's output."""
    vector, join = "CAST(NULL AS text)", ""
    if model is not None:
        vector = "CAST(e.embedding AS text)"
        join = f"LEFT JOIN {model.partition} e ON e.workspace_id = m.workspace_id AND e.memory_id = m.memory_id"
    statement = text(RATED_OBSERVATIONS.format(vector=vector, join=join))
    return (await connection.execute(statement, {"workspace_id": workspace_id, "limit": limit})).all()


async def keyed(connection: AsyncConnection, workspace_id: int, memory_id: UUID, prefix: str) -> dict[str, int]:
    """The memory's ratings by idempotency key, as far as it begins so; in their order, the undone ones included."""
    values = {"workspace_id": workspace_id, "memory_id": memory_id, "prefix": prefix}
    return {row.idempotency_key: row.rating for row in await connection.execute(KEYED, values)}
