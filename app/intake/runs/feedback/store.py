"""The feedback log and its SQL: ratings, and the quality that they replay to. Entries are only appended."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import psycopg
from msgspec import Meta, Struct, field, structs

from app.errors import InvalidInput
from app.foundation.db.session import Row, Session
from app.foundation.values import frozen
from app.intake.runs.run import RunId
from app.storage.memories import changes
from app.storage.memories.memory import NAME_LIMIT, new_id

LEAST_QUALITY, MOST_QUALITY = -3, 3
_COMMENT_LIMIT = 10_000
_OF_USER = """
SELECT count(*) FROM feedback f JOIN memories m USING (workspace_id, memory_id)
WHERE f.workspace_id = %(workspace_id)s AND m.user_id = %(user)s
"""


@frozen
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


@frozen
class Rated:
    """The outcome of a rating."""

    rating: Rating
    quality: int
    """The memory's quality after the rating."""
    replaced: Rating | None = None
    """The reviewer's earlier rating of the memory, which this one took the place of."""


class RatingDetails(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The details of a rating."""

    comment: Annotated[str, Meta(max_length=_COMMENT_LIMIT)] = ""
    run_id: RunId | None = None
    reviewer: (
        Annotated[
            str, Meta(max_length=NAME_LIMIT, description="has one rating of each memory: another takes its place")
        ]
        | None
    ) = None


class FeedbackEntry(RatingDetails, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new entry of the log: a rating, or the undoing of one."""

    memory_id: UUID
    rating: Literal[1, -1] | None = None
    undoes: UUID | None = None
    idempotency_key: Annotated[str, Meta(min_length=1, max_length=NAME_LIMIT)] | None = None
    created_at: datetime | None = None
    """The time of an entry of an earlier log; None stands for now."""
    feedback_id: UUID = field(default_factory=new_id)


def replay_quality(ratings: Sequence[int]) -> int:
    """Returns the quality that ratings give in their order, clamped to [-3, 3] at each step."""
    quality = 0
    for rating in ratings:
        quality = max(LEAST_QUALITY, min(MOST_QUALITY, quality + rating))
    return quality


_APPEND = """
INSERT INTO feedback (
    workspace_id, feedback_id, memory_id, rating, undoes, comment, run_id, idempotency_key, reviewer,
    created_at
)
VALUES (
    %(workspace_id)s, %(feedback_id)s, %(memory_id)s, %(rating)s, %(undoes)s, %(comment)s, %(run_id)s,
    %(idempotency_key)s, %(reviewer)s, coalesce(%(created_at)s::timestamptz, clock_timestamp())
)
"""

_RATINGS = """
SELECT f.feedback_id, f.memory_id, f.rating, f.comment, f.run_id, f.created_at, u.created_at AS undone_at,
    f.reviewer
FROM feedback f JOIN memories m ON m.workspace_id = f.workspace_id AND m.memory_id = f.memory_id
LEFT JOIN feedback u ON u.workspace_id = f.workspace_id AND u.undoes = f.feedback_id
WHERE f.workspace_id = %(workspace_id)s AND f.rating IS NOT NULL
"""
_RATINGS_OF = f"{_RATINGS} AND f.memory_id = %(memory_id)s ORDER BY f.position"
_STANDING = f"""{_RATINGS} AND f.memory_id = ANY(%(ids)s::uuid[]) AND u.feedback_id IS NULL
ORDER BY f.position DESC"""
_RATING_BY_KEY = f"{_RATINGS} AND f.idempotency_key = %(key)s"

_MEMORY_OF = """
SELECT memory_id FROM feedback
WHERE workspace_id = %(workspace_id)s AND feedback_id = %(feedback_id)s AND rating IS NOT NULL
"""

# Rated observations. A prompt shows the beginning of an output alone. The request of an observation is that of its
# maker, or else of another run that states the same. The run's output counts only for an observation that was given
# with the run, and only if the run has not replaced the output since.
_RATED_COMPRESSIONS = """
SELECT m.memory_id, f.ratings, m.title, o.narrative, o.facts, o.prompt, o.task, o.task_type, c.request,
    CASE WHEN o.compressor = 'given' AND NOT r.output_replaced THEN left(r.output, %(shown)s) END AS output,
    r.lines, r.bytes, r.output IS NOT NULL AS replaced
FROM (
    SELECT f.memory_id, array_agg(f.rating ORDER BY f.position) AS ratings
    FROM feedback f
    WHERE f.workspace_id = %(workspace_id)s AND f.rating IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM feedback u WHERE u.workspace_id = %(workspace_id)s AND u.undoes = f.feedback_id
    )
    GROUP BY f.memory_id
) AS f
JOIN memories m ON m.workspace_id = %(workspace_id)s AND m.memory_id = f.memory_id
JOIN observations o ON o.workspace_id = m.workspace_id AND o.memory_id = m.memory_id
LEFT JOIN runs r ON r.workspace_id = m.workspace_id AND r.run_id = m.run_id
LEFT JOIN LATERAL (
    SELECT jsonb_set(request, '{output}', to_jsonb(left(request ->> 'output', %(shown)s))) AS request
    FROM compressions c
    WHERE c.workspace_id = %(workspace_id)s AND c.memory_id = m.memory_id AND c.outcome IN ('stored', 'joined')
    ORDER BY coalesce(c.observation_id = m.memory_id OR c.run_id = m.run_id, false) DESC, c.created_at LIMIT 1
) AS c ON true
ORDER BY m.memory_id DESC LIMIT %(limit)s
"""

_EXPORT = """
SELECT f.position, f.feedback_id, f.memory_id, m.kind, m.title, m.body, f.rating, f.comment, f.run_id, f.created_at,
    m.final_score, m.quality
FROM feedback f JOIN memories m USING (workspace_id, memory_id)
WHERE f.workspace_id = %(workspace_id)s AND f.rating IS NOT NULL AND f.position > %(after)s
    AND NOT EXISTS (SELECT 1 FROM feedback u WHERE u.workspace_id = %(workspace_id)s AND u.undoes = f.feedback_id)
ORDER BY f.position LIMIT %(limit)s
"""

_KEYED = """
SELECT idempotency_key, rating FROM feedback
WHERE workspace_id = %(workspace_id)s AND memory_id = %(memory_id)s AND rating IS NOT NULL
    AND starts_with(idempotency_key, %(prefix)s)
ORDER BY position
"""

_FORGET_OF_ALL = """
DELETE FROM feedback f USING unnest(%(workspaces)s::bigint[], %(ids)s::uuid[]) AS gone(workspace_id, memory_id)
WHERE f.workspace_id = gone.workspace_id AND f.memory_id = gone.memory_id
"""


async def append(session: Session, entry: FeedbackEntry) -> None:
    """Appends an entry to the log.

    Raises:
        InvalidInput: a concurrent call used the key for another memory.
    """
    try:
        await session.execute(_APPEND, structs.asdict(entry))
    except psycopg.errors.UniqueViolation as error:
        raise InvalidInput("Idempotency-Key", "was used for another memory; take a new one") from error


async def ratings_of(session: Session, memory_id: UUID) -> list[Rating]:
    """Returns a memory's ratings in their order, the undone ones included."""
    return await session.rows_as(Rating, _RATINGS_OF, {"memory_id": memory_id})


async def standing_ratings(session: Session, ids: Sequence[UUID]) -> list[Rating]:
    """Returns the ratings of these memories that stand, the latest first."""
    return await session.rows_as(Rating, _STANDING, {"ids": list(ids)})


async def by_key(session: Session, key: str) -> Rating | None:
    """Returns the rating that was sent under this idempotency key."""
    return await session.row_as(Rating, _RATING_BY_KEY, {"key": key})


async def memory_of(session: Session, feedback_id: UUID) -> UUID | None:
    """Returns the id of a rating's memory."""
    found: UUID | None = await session.value(_MEMORY_OF, {"feedback_id": feedback_id})
    return found


def quality_of(ratings: Sequence[Rating]) -> int:
    """Returns the quality that the ratings in force give a memory."""
    return replay_quality([rating.rating for rating in ratings if rating.undone_at is None])


async def set_quality(session: Session, memory_id: UUID) -> None:
    """Replays the ratings of a memory, and stores the result as its quality."""
    await changes.set_quality(session, memory_id, quality_of(await ratings_of(session, memory_id)))


async def standing(session: Session, *, after: int, limit: int) -> Sequence[Row]:
    """Returns the ratings after this position that were not undone, in their order, each with the rated text."""
    return await session.rows(_EXPORT, {"after": after, "limit": limit})


async def rated_compressions(session: Session, *, shown: int, limit: int) -> Sequence[Row]:
    """Returns rated compressions, those of the newest memories first, each with its ratings in force.

    Each has what its prompt is known by: the stored prompt, the request or its run's output, cut to `shown` characters.
    """
    return await session.rows(_RATED_COMPRESSIONS, {"shown": shown, "limit": limit})


async def ratings_by_key(session: Session, memory_id: UUID, prefix: str) -> dict[str, int]:
    """Returns the memory's ratings whose idempotency keys have this prefix, by key, the undone ones included."""
    values = {"memory_id": memory_id, "prefix": prefix}
    return {row.idempotency_key: row.rating for row in await session.rows(_KEYED, values)}


async def forget_of_all(session: Session, memories: Sequence[tuple[int, UUID]]) -> None:
    """Removes the ratings of destroyed memories whose empty row stays; they are given by workspace and id."""
    workspaces, ids = [item[0] for item in memories], [item[1] for item in memories]
    await session.execute(_FORGET_OF_ALL, {"workspaces": workspaces, "ids": ids})


async def count_of_user(session: Session, user: str) -> int:
    """Returns the number of ratings of a user's memories."""
    return int(await session.value(_OF_USER, {"user": user}))
