"""The SQL that linking reads: the queue, the texts of memories, the memories with a phrase, and near vectors."""

from collections.abc import Collection, Sequence
from typing import NamedTuple
from uuid import UUID

from app.foundation.db.session import Session
from app.storage.index.embedding import MOST_PASSAGES
from app.storage.index.indexing import THESE, VECTORS, WORDS
from app.storage.index.models import StoredModel
from app.storage.index.vectors import has_passages
from app.storage.links.relations import TASKS_COMPARED, LinkText, Task

OTHERS_AT_MOST = 64
"""Most memories that are read for a phrase. A phrase that more memories have links nothing."""
_EF_SEARCH = 100
"""Vectors that the index keeps in view while it looks for the nearest of a memory. Among 250,000, 100 find 0.978 of the
nearest 6 in 2.3 ms of processor time, and the 200 of recalls find 0.994 in 4.4 ms: for a million memories, half an hour
more."""
READ_CHARACTERS = 10_000
"""Characters of a text that are read: later names belong to another subject. Chunks have at most 1,500."""


class Phrase(NamedTuple):
    """A sequence of words that is searched for in all texts."""

    text: str
    rare: int
    """Most memories that may have its rarest word; if more have it, the phrase is not searched for."""


_PENDING_WORKSPACE = """
SELECT workspace_id FROM pending_links WHERE step = %(step)s AND workspace_id <> ALL(%(without)s::bigint[]) LIMIT 1
"""

_MORE_PENDING = """
SELECT count(*) > %(count)s FROM (SELECT FROM pending_links WHERE step = %(step)s LIMIT %(count)s::integer + 1) AS few
"""

_PENDING_TEXTS = """
SELECT p.memory_id, m.kind, m.title, left(m.body, %(characters)s) AS body, m.language, p.asked
FROM pending_links p JOIN memories m USING (workspace_id, memory_id)
WHERE p.workspace_id = %(workspace_id)s AND p.step = %(step)s ORDER BY p.memory_id LIMIT %(limit)s
"""

# A memory whose vector was dropped is queued again with its next vector.
_PENDING_VECTORS = """
SELECT memory_id, asked FROM pending_links
WHERE workspace_id = %(workspace_id)s AND step = %(step)s ORDER BY memory_id LIMIT %(limit)s
"""

_TEXTS = f"""
SELECT memory_id, kind, title, left(body, %(characters)s) AS body, language FROM memories
WHERE {THESE} AND valid_until IS NULL
"""  # noqa: S608 - constants

_LIVE_TASKS = """
SELECT o.memory_id, o.task FROM observations o JOIN memories m USING (workspace_id, memory_id)
WHERE o.workspace_id = %(workspace_id)s AND o.task <> '' AND m.valid_until IS NULL
"""
_TASKS = f"""
({_LIVE_TASKS} ORDER BY o.memory_id DESC LIMIT %(limit)s)
UNION ({_LIVE_TASKS} AND md5(o.task) = ANY(ARRAY(SELECT md5(task) FROM observations WHERE {THESE}))
    ORDER BY o.memory_id DESC LIMIT %(limit)s)
UNION ({_LIVE_TASKS} AND o.memory_id = ANY(%(ids)s::uuid[]))
ORDER BY memory_id DESC
"""  # noqa: S608 - constants

# A phrase of only frequent words is not searched for: the index would read all memories with any of them.
HAVING = """
WITH asked AS MATERIALIZED (
    SELECT given.place, priors_phrase(language::regconfig, given.phrase) AS phrase
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
    found = await session.value(_PENDING_WORKSPACE, {"step": step, "without": without})
    return None if found is None else int(found)


async def more_pending(session: Session, count: int) -> bool:
    """Tells whether more than `count` memories are pending to be linked by their words, in all workspaces together."""
    return bool(await session.value(_MORE_PENDING, {"count": count, "step": WORDS}))


async def pending_texts(session: Session, limit: int) -> list[LinkText]:
    """Returns memories that are pending to be linked by their words, oldest first."""
    given = {"step": WORDS, "limit": limit, "characters": READ_CHARACTERS}
    return [LinkText(*row) for row in await session.tuples(_PENDING_TEXTS, given)]


async def pending_vectors(session: Session, limit: int) -> dict[UUID, int]:
    """Returns memories that are pending to be linked by vectors, oldest first, with how often each was queued."""
    return dict(await session.tuples(_PENDING_VECTORS, {"step": VECTORS, "limit": limit}))


async def tasks(session: Session, ids: Collection[UUID]) -> list[Task]:
    """Returns the tasks of these observations, of the newest, and of those with exactly these tasks, newest first."""
    return [Task(*row) for row in await session.tuples(_TASKS, {"ids": ids, "limit": TASKS_COMPARED})]


async def texts(session: Session, ids: Collection[UUID]) -> dict[UUID, LinkText]:
    """Returns the live memories among these, by id."""
    rows = await session.tuples(_TEXTS, {"ids": ids, "characters": READ_CHARACTERS})
    return {row[0]: LinkText(*row) for row in rows}


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
    """Returns each memory's `count` nearest others of at least this cosine similarity: (memory, other, similarity).

    Of two long memories the nearest passages count. The rest of the transaction searches as closely as this.
    """
    await session.execute(f"SET LOCAL hnsw.ef_search = {_EF_SEARCH}")
    distance = f"o.embedding::halfvec({model.dimension:d}) <=> e.embedding::halfvec({model.dimension:d})"
    # Each workspace has its own index, so the text contains the workspace's id; `+ 0` keeps the planner from the index.
    order = distance if indexed else f"({distance}) + 0"
    # Every memory that comes before may have as many passages as a memory can have, the memory itself too.
    read = (count + 1) * (MOST_PASSAGES if await has_passages(session, model) else 1)
    statement = f"""
        SELECT memory_id, other, similarity FROM (
            SELECT *, row_number() OVER (PARTITION BY memory_id ORDER BY similarity DESC, other) AS place FROM (
                SELECT e.memory_id, found.memory_id AS other, 1 - min(found.distance) AS similarity
                FROM {model.partition} e CROSS JOIN LATERAL (
                    SELECT o.memory_id, {distance} AS distance FROM {model.partition} o
                    WHERE o.workspace_id = {session.workspace_id:d} ORDER BY {order} LIMIT {read:d}
                ) AS found
                WHERE e.workspace_id = {session.workspace_id:d} AND e.memory_id = ANY(%(ids)s::uuid[])
                    AND found.memory_id <> e.memory_id AND found.distance <= %(furthest)s
                GROUP BY 1, 2
            ) AS others
        ) AS placed WHERE place <= {count:d}
    """  # noqa: S608 - the partition's name, the workspace and the counts are numbers
    rows = await session.tuples(statement, {"ids": ids, "furthest": 1 - least})
    return [(memory_id, other, float(similarity)) for memory_id, other, similarity in rows]
