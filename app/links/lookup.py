"""The SQL that linking reads: the queue, the texts of memories, the memories with a phrase, and near vectors."""

from collections.abc import Collection, Sequence
from typing import NamedTuple
from uuid import UUID

from app.db.session import Session
from app.index.indexing import THESE, VECTORS, WORDS
from app.index.models import StoredModel
from app.links.relations import TASKS_COMPARED, Task, Text

OTHERS_AT_MOST = 64
"""Most memories that are read for a phrase. A phrase that more memories have links nothing."""
READ_CHARACTERS = 10_000
"""Characters of a text that are read: later names belong to another subject. Chunks have at most 1,500."""


class Phrase(NamedTuple):
    """A sequence of words that is searched for in all texts."""

    text: str
    rare: int
    """Most memories that may have its rarest word; if more have it, the phrase is not searched for."""


PENDING_WORKSPACE = """
SELECT workspace_id FROM pending_links WHERE step = %(step)s AND workspace_id <> ALL(%(without)s::bigint[]) LIMIT 1
"""

MORE_PENDING = """
SELECT count(*) > %(count)s FROM (
    SELECT 1 FROM pending_links WHERE NOT (step = %(vectors)s AND workspace_id = ANY(%(without)s::bigint[]))
    LIMIT %(count)s::integer + 1
) AS few
"""

PENDING_TEXTS = """
SELECT p.memory_id, m.kind, m.title, left(m.body, %(characters)s) AS body, m.language, p.asked
FROM pending_links p JOIN memories m USING (workspace_id, memory_id)
WHERE p.workspace_id = %(workspace_id)s AND p.step = %(step)s ORDER BY p.memory_id LIMIT %(limit)s
"""

# A memory whose vector was dropped is queued again with its next vector.
PENDING_VECTORS = """
SELECT memory_id, asked FROM pending_links
WHERE workspace_id = %(workspace_id)s AND step = %(step)s ORDER BY memory_id LIMIT %(limit)s
"""

TEXTS = f"""
SELECT memory_id, kind, title, left(body, %(characters)s) AS body, language FROM memories
WHERE {THESE} AND valid_until IS NULL
"""  # noqa: S608 - constants

LIVE_TASKS = """
SELECT o.memory_id, o.task FROM observations o JOIN memories m USING (workspace_id, memory_id)
WHERE o.workspace_id = %(workspace_id)s AND o.task <> '' AND m.valid_until IS NULL
"""
TASKS = f"""
({LIVE_TASKS} ORDER BY o.memory_id DESC LIMIT %(limit)s)
UNION ({LIVE_TASKS} AND md5(o.task) = ANY(ARRAY(SELECT md5(task) FROM observations WHERE {THESE}))
    ORDER BY o.memory_id DESC LIMIT %(limit)s)
UNION ({LIVE_TASKS} AND o.memory_id = ANY(%(ids)s::uuid[]))
ORDER BY memory_id DESC
"""  # noqa: S608 - constants

# A phrase of only frequent words is not searched for: the index would read all memories with any of them.
HAVING = """
WITH asked AS MATERIALIZED (
    SELECT given.place, phraseto_tsquery(language::regconfig, translate(given.phrase, '/\\', '  ')) AS phrase
    FROM unnest(%(phrases)s::text[], %(rare)s::integer[]) WITH ORDINALITY AS given(phrase, rare, place)
    CROSS JOIN (SELECT unnest(languages) AS language FROM workspaces WHERE workspace_id = %(workspace_id)s) AS spoken
    WHERE (
        SELECT min(coalesce(s.document_count, 0))
        FROM unnest(tsvector_to_array(priors_terms(language::regconfig, given.phrase))) AS word(lexeme)
        LEFT JOIN lexeme_statistics s ON s.workspace_id = %(workspace_id)s AND s.lexeme = word.lexeme
    ) <= given.rare
)
SELECT DISTINCT asked.place, found.memory_id
FROM asked CROSS JOIN LATERAL priors_matching(asked.phrase, %(limit)s) AS found(memory_id)
"""


async def pending_workspace(session: Session, step: str, *, without: Collection[int] = ()) -> int | None:
    """Returns a workspace, not among `without`, in which memories are pending for this step; None if there is none.

    The session sees all workspaces.
    """
    found = await session.value(PENDING_WORKSPACE, {"step": step, "without": list(without)})
    return None if found is None else int(found)


async def more_pending(session: Session, count: int, *, without: Collection[int] = ()) -> bool:
    """Tells whether more than `count` steps are pending, without the vector steps of the workspaces in `without`.

    The session sees all workspaces.
    """
    given = {"count": count, "vectors": VECTORS, "without": list(without)}
    return bool(await session.value(MORE_PENDING, given))


async def pending_texts(session: Session, limit: int) -> list[Text]:
    """Returns memories that are pending to be linked by their words, oldest first."""
    given = {"step": WORDS, "limit": limit, "characters": READ_CHARACTERS}
    return [Text(**row._asdict()) for row in await session.rows(PENDING_TEXTS, given)]


async def pending_vectors(session: Session, limit: int) -> dict[UUID, int]:
    """Returns memories that are pending to be linked by vectors, oldest first, with how often each was queued."""
    return dict(await session.tuples(PENDING_VECTORS, {"step": VECTORS, "limit": limit}))


async def tasks(session: Session, ids: Collection[UUID]) -> list[Task]:
    """Returns the tasks of these observations, of the newest, and of those with exactly these tasks, newest first."""
    return [Task(*row) for row in await session.rows(TASKS, {"ids": list(ids), "limit": TASKS_COMPARED})]


async def texts(session: Session, ids: Collection[UUID]) -> dict[UUID, Text]:
    """Returns the live memories among these, by id."""
    rows = await session.rows(TEXTS, {"ids": list(ids), "characters": READ_CHARACTERS})
    return {row.memory_id: Text(**row._asdict()) for row in rows}


async def having(session: Session, phrases: Sequence[Phrase]) -> list[list[UUID]]:
    """Returns, for each phrase, the memories that have it in any form of its words, at most OTHERS_AT_MOST."""
    found: list[list[UUID]] = [[] for _ in phrases]
    if phrases:
        words, rare = map(list, zip(*phrases, strict=True))
        for place, memory_id in await session.tuples(HAVING, {"phrases": words, "rare": rare, "limit": OTHERS_AT_MOST}):
            found[place - 1].append(memory_id)
    return found


async def nearest(
    session: Session, model: StoredModel, ids: Sequence[UUID], *, count: int, least: float, indexed: bool
) -> list[tuple[UUID, UUID, float]]:
    """Returns each memory's `count` nearest others of at least this cosine similarity: (memory, other, similarity)."""
    distance = f"o.embedding::halfvec({model.dimension:d}) <=> e.embedding::halfvec({model.dimension:d})"
    # Each workspace has its own index, so the text contains the workspace's id; `+ 0` keeps the planner from the index.
    order = distance if indexed else f"({distance}) + 0"
    statement = f"""
        SELECT e.memory_id, found.memory_id AS other, 1 - found.distance AS similarity
        FROM {model.partition} e CROSS JOIN LATERAL (
            SELECT o.memory_id, {distance} AS distance FROM {model.partition} o
            WHERE o.workspace_id = {session.workspace_id:d} ORDER BY {order} LIMIT %(count)s + 1
        ) AS found
        WHERE e.workspace_id = {session.workspace_id:d} AND e.memory_id = ANY(%(ids)s::uuid[])
            AND found.memory_id <> e.memory_id AND found.distance <= %(furthest)s
    """  # noqa: S608 - the partition's name and the workspace are numbers
    rows = await session.tuples(statement, {"ids": list(ids), "count": count, "furthest": 1 - least})
    return [(memory_id, other, float(similarity)) for memory_id, other, similarity in rows]
