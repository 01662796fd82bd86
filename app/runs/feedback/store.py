"""The feedback log and its SQL: ratings, and the quality that they replay to. Entries are only appended."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from uuid import UUID

import psycopg

from app.db.session import Row, Session
from app.errors import InvalidInput
from app.index.models import StoredModel
from app.memories import changes
from app.memories.memory import new_id

LEAST_QUALITY, MOST_QUALITY = -3, 3
OF_USER = """
SELECT count(*) FROM feedback f JOIN memories m USING (workspace_id, memory_id)
WHERE f.workspace_id = %(workspace_id)s AND m.user_id = %(user)s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """An entry of the feedback log."""

    feedback_id: UUID
    memory_id: UUID
    rating: int
    """The judgement: 1 or -1."""
    comment: str
    run_id: str | None
    created_at: datetime
    undone_at: datetime | None
    reviewer: str | None = None
    """The person who gave it; None where it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rated:
    """The outcome of a rating."""

    rating: Rating
    quality: int
    """The memory's quality after the rating."""
    replaced: Rating | None = None
    """The reviewer's earlier rating of the memory, which this one took the place of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A new entry of the log: a rating, or the undoing of one."""

    memory_id: UUID
    rating: int | None = None
    undoes: UUID | None = None
    comment: str = ""
    run_id: str | None = None
    idempotency_key: str | None = None
    reviewer: str | None = None
    created_at: datetime | None = None
    """The time of an entry of an earlier log; None stands for now."""
    feedback_id: UUID = field(default_factory=new_id)


def replayed(ratings: Sequence[int]) -> int:
    """Returns the quality that ratings give in their order, clamped to [-3, 3] at each step."""
    quality = 0
    for rating in ratings:
        quality = max(LEAST_QUALITY, min(MOST_QUALITY, quality + rating))
    return quality


APPEND = """
INSERT INTO feedback (
    workspace_id, feedback_id, memory_id, rating, undoes, comment, run_id, idempotency_key, reviewer,
    created_at
)
VALUES (
    %(workspace_id)s, %(feedback_id)s, %(memory_id)s, %(rating)s, %(undoes)s, %(comment)s, %(run_id)s,
    %(idempotency_key)s, %(reviewer)s, coalesce(%(created_at)s::timestamptz, clock_timestamp())
)
"""

RATINGS = """
SELECT f.feedback_id, f.memory_id, f.rating, f.comment, f.run_id, f.created_at, u.created_at AS undone_at,
    f.reviewer
FROM feedback f JOIN memories m ON m.workspace_id = f.workspace_id AND m.memory_id = f.memory_id
LEFT JOIN feedback u ON u.workspace_id = f.workspace_id AND u.undoes = f.feedback_id
WHERE f.workspace_id = %(workspace_id)s AND f.rating IS NOT NULL
"""
RATINGS_OF = f"{RATINGS} AND f.memory_id = %(memory_id)s ORDER BY f.position"
COMMENTED = f"""{RATINGS} AND f.memory_id = ANY(%(ids)s::uuid[]) AND f.comment <> '' AND u.feedback_id IS NULL
ORDER BY f.position DESC"""
RATING_BY_KEY = f"{RATINGS} AND f.idempotency_key = %(key)s"

MEMORY_OF = """
SELECT memory_id FROM feedback
WHERE workspace_id = %(workspace_id)s AND feedback_id = %(feedback_id)s AND rating IS NOT NULL
"""

# Rated observations with their requests, outputs and vectors. The request of an observation is that of its maker, or
# else of another run that states the same. The run's output counts only for an observation that was given with the
# run, and only if the run has not replaced the output since.
RATED_OBSERVATIONS = """
SELECT m.memory_id, m.title, o.task, o.task_type, o.narrative, o.facts, o.prompt, m.quality, c.request,
    CASE WHEN o.compressor = 'given' AND NOT r.output_replaced THEN r.output END AS output,
    r.output IS NOT NULL AS replaced, {vector} AS vector
FROM memories m JOIN observations o USING (workspace_id, memory_id)
LEFT JOIN runs r ON r.workspace_id = m.workspace_id AND r.run_id = m.run_id
LEFT JOIN LATERAL (
    SELECT request FROM compressions c
    WHERE c.workspace_id = %(workspace_id)s AND c.memory_id = m.memory_id AND c.outcome IN ('stored', 'joined')
    ORDER BY coalesce(c.observation_id = m.memory_id OR c.run_id = m.run_id, false) DESC, c.created_at LIMIT 1
) AS c ON true
{join}
WHERE m.workspace_id = %(workspace_id)s AND EXISTS (
    SELECT 1 FROM feedback f WHERE f.workspace_id = %(workspace_id)s AND f.memory_id = m.memory_id
        AND f.rating IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM feedback u WHERE u.workspace_id = %(workspace_id)s AND u.undoes = f.feedback_id)
)
ORDER BY m.memory_id DESC LIMIT %(limit)s
"""

EXPORT = """
SELECT f.position, f.feedback_id, f.memory_id, m.kind, m.title, m.body, f.rating, f.comment, f.run_id, f.created_at,
    m.quality, m.final_score
FROM feedback f JOIN memories m USING (workspace_id, memory_id)
WHERE f.workspace_id = %(workspace_id)s AND f.rating IS NOT NULL AND f.position > %(after)s
    AND NOT EXISTS (SELECT 1 FROM feedback u WHERE u.workspace_id = %(workspace_id)s AND u.undoes = f.feedback_id)
ORDER BY f.position LIMIT %(limit)s
"""

KEYED = """
SELECT idempotency_key, rating FROM feedback
WHERE workspace_id = %(workspace_id)s AND memory_id = %(memory_id)s AND rating IS NOT NULL
    AND starts_with(idempotency_key, %(prefix)s)
ORDER BY position
"""

FORGET_OF_ALL = """
DELETE FROM feedback f USING unnest(%(workspaces)s::bigint[], %(ids)s::uuid[]) AS gone(workspace_id, memory_id)
WHERE f.workspace_id = gone.workspace_id AND f.memory_id = gone.memory_id
"""


async def append(session: Session, entry: Entry) -> None:
    """Appends an entry to the log.

    Raises:
        InvalidInput: a concurrent call used the key for another memory.
    """
    try:
        await session.execute(APPEND, asdict(entry))
    except psycopg.errors.UniqueViolation as error:
        raise InvalidInput("Idempotency-Key", "was used for another memory; take a new one") from error


async def ratings_of(session: Session, memory_id: UUID) -> list[Rating]:
    """Returns a memory's ratings in their order, the undone ones included."""
    return [Rating(**row._asdict()) for row in await session.rows(RATINGS_OF, {"memory_id": memory_id})]


async def commented(session: Session, ids: Sequence[UUID]) -> list[Rating]:
    """Returns the ratings of these memories that stand and have a comment, the latest first."""
    return [Rating(**row._asdict()) for row in await session.rows(COMMENTED, {"ids": list(ids)})]


async def by_key(session: Session, key: str) -> Rating | None:
    """Returns the rating that was sent under this idempotency key."""
    row = await session.row(RATING_BY_KEY, {"key": key})
    return None if row is None else Rating(**row._asdict())


async def memory_of(session: Session, feedback_id: UUID) -> UUID | None:
    """Returns the id of a rating's memory."""
    found: UUID | None = await session.value(MEMORY_OF, {"feedback_id": feedback_id})
    return found


async def set_quality(session: Session, memory_id: UUID) -> tuple[int, list[Rating]]:
    """Replays the log of a memory and stores the result as its quality; returns it, and the ratings of the log."""
    ratings = await ratings_of(session, memory_id)
    quality = replayed([rating.rating for rating in ratings if rating.undone_at is None])
    await changes.set_quality(session, memory_id, quality)
    return quality, ratings


async def standing(session: Session, *, after: int, limit: int) -> Sequence[Row]:
    """Returns the ratings after this position that were not undone, in their order, each with its memory's text."""
    return await session.rows(EXPORT, {"after": after, "limit": limit})


async def rated_observations(session: Session, model: StoredModel | None, *, limit: int) -> Sequence[Row]:
    """Returns observations with a rating, each with its prompt, request and vector, and its run's output."""
    vector, join = "NULL::text", ""
    if model is not None:
        vector = "e.embedding::text"
        join = f"""LEFT JOIN {model.partition} e
            ON e.workspace_id = m.workspace_id AND e.memory_id = m.memory_id AND e.passage = 0"""
    statement = RATED_OBSERVATIONS.format(vector=vector, join=join)
    return await session.rows(statement, {"limit": limit})


async def keyed(session: Session, memory_id: UUID, prefix: str) -> dict[str, int]:
    """Returns the memory's ratings whose idempotency keys have this prefix, by key, the undone ones included."""
    values = {"memory_id": memory_id, "prefix": prefix}
    return {row.idempotency_key: row.rating for row in await session.rows(KEYED, values)}


async def forget_of_all(session: Session, memories: Sequence[tuple[int, UUID]]) -> None:
    """Removes the ratings of destroyed memories whose empty row stays; they are given by workspace and id."""
    workspaces, ids = [item[0] for item in memories], [item[1] for item in memories]
    await session.execute(FORGET_OF_ALL, {"workspaces": workspaces, "ids": ids})


async def count_of_user(session: Session, user: str) -> int:
    """Returns the number of ratings of a user's memories."""
    return int(await session.value(OF_USER, {"user": user}))
