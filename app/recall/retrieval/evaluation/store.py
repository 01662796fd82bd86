"""The SQL of evaluations: memories to make questions from, and the answers that a user's questions name."""

from collections.abc import Sequence
from uuid import UUID

from app.foundation.db.session import Session
from app.recall.retrieval.evaluation.questions import AnsweredQuestion, QuestionMemory

_SAMPLED = 2_000
"""Memories of which questions are made; in the order of their texts' hashes, so that equal stores give equal ones."""
_READ_CHARACTERS = 20_000

_SAMPLE = f"""
SELECT m.memory_id, m.kind, m.title, left(m.body, {_READ_CHARACTERS}) AS body, m.source_id
FROM memories m JOIN lexical l USING (workspace_id, memory_id)
WHERE m.workspace_id = %(workspace_id)s AND m.valid_until IS NULL AND m.kind <> 'cue'
ORDER BY m.content_hash, m.memory_id LIMIT {_SAMPLED}
"""  # noqa: S608 - constants
_LIVE = """
SELECT memory_id, coalesce(source_id, memory_id) AS source FROM memories
WHERE workspace_id = %(workspace_id)s AND valid_until IS NULL AND {condition}
"""
BY_ID, BY_TEXT = "memory_id = %(wanted)s", "body = %(wanted)s"
BY_SOURCE = """source_id IN (
    SELECT source_id FROM sources
    WHERE workspace_id = %(workspace_id)s AND %(wanted)s IN (uri, title) AND retired_at IS NULL
)"""
# The latest recalls only: what people liked last year may have been written anew since.
_PRAISED = """
SELECT r.query, array_agg(DISTINCT h.memory_id) AS memories,
    min(coalesce(m.source_id, m.memory_id)::text) AS source
FROM (
    SELECT recall_id, query FROM recalls
    WHERE workspace_id = %(workspace_id)s AND purpose <> 'import' ORDER BY recall_id DESC LIMIT 5000
) AS r
JOIN recall_hits h ON h.workspace_id = %(workspace_id)s AND h.recall_id = r.recall_id
JOIN memories m ON m.workspace_id = %(workspace_id)s AND m.memory_id = h.memory_id
WHERE m.valid_until IS NULL AND (h.used OR m.quality > 0)
GROUP BY r.query ORDER BY r.query LIMIT 500
"""


async def sample(session: Session) -> list[QuestionMemory]:
    """Returns live memories from which questions can be made."""
    return [QuestionMemory(*row) for row in await session.tuples(_SAMPLE, {})]


async def live_among(session: Session, condition: str, wanted: object) -> dict[UUID, UUID]:
    """Returns the live memories that meet a condition of this module, each with its source, or itself without one."""
    return {
        row.memory_id: row.source for row in await session.rows(_LIVE.format(condition=condition), {"wanted": wanted})
    }


async def praised_queries(session: Session) -> Sequence[AnsweredQuestion]:
    """Returns queries of the log whose hits were used or rated up, with these as their answers."""
    rows = await session.rows(_PRAISED)
    return [
        AnsweredQuestion(
            question=row.query, answers=tuple(frozenset({memory}) for memory in row.memories), group=row.source
        )
        for row in rows
    ]
