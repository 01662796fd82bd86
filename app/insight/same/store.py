"""The SQL that finds texts which hold another text, and what was made of them."""

from collections.abc import Sequence
from uuid import UUID

from app.foundation.db.session import Session
from app.storage.memories.wording import SHORTEST_HELD, is_long, plain

MOST_FOUND = 500
"""Memories that one statement returns. A person looks through them before they go."""
_GIVEN = f"""given AS MATERIALIZED (
    SELECT DISTINCT {plain("one")} AS text FROM unnest(%(texts)s::text[]) AS one WHERE one ~ '[[:alnum:]]'
)"""  # noqa: S608 - constants
_LIVE = "m.workspace_id = %(workspace_id)s AND m.valid_until IS NULL"
_HOLDING = f"""
WITH {_GIVEN}, plain AS MATERIALIZED (
    SELECT m.memory_id, m.kind, {plain("m.body")} AS body,
        {plain("m.title || ' ' || m.body")} AS text
    FROM memories m WHERE {_LIVE}
)
SELECT p.memory_id FROM plain p WHERE EXISTS (
    SELECT FROM given WHERE p.body = given.text
        OR (%(short)s OR {is_long("given.text")}) AND strpos(p.text, given.text) > 0
        OR p.kind IN ('cue', 'note') AND {is_long("p.body")} AND strpos(given.text, p.body) > 0
)
ORDER BY p.memory_id LIMIT {MOST_FOUND + 1}
"""  # noqa: S608 - constants
_QUOTING = f"""
WITH {_GIVEN}, plain AS MATERIALIZED (
    SELECT m.memory_id, e.turn_id, {plain("e.quote")} AS quote
    FROM cue_evidence e JOIN memories m USING (workspace_id, memory_id) WHERE {_LIVE}
)
SELECT DISTINCT p.memory_id FROM plain p WHERE p.turn_id = ANY(%(ids)s::uuid[]) OR EXISTS (
    SELECT FROM given WHERE {is_long("p.quote")} AND strpos(given.text, p.quote) > 0
        OR (%(short)s OR {is_long("given.text")}) AND strpos(p.quote, given.text) > 0
)
ORDER BY p.memory_id LIMIT {MOST_FOUND + 1}
"""  # noqa: S608 - constants
_EVIDENCE = """
SELECT quote, turn_id FROM cue_evidence WHERE workspace_id = %(workspace_id)s AND memory_id = ANY(%(ids)s::uuid[])
ORDER BY memory_id, place
"""
_LINKED = f"""
SELECT DISTINCT m.memory_id, m.body FROM links l JOIN memories m ON m.workspace_id = l.workspace_id
    AND m.memory_id = CASE WHEN l.from_id = ANY(%(ids)s::uuid[]) THEN l.to_id ELSE l.from_id END
WHERE {_LIVE} AND l.relation = %(relation)s
    AND (l.to_id = ANY(%(ids)s::uuid[]) OR %(both)s AND l.from_id = ANY(%(ids)s::uuid[]))
ORDER BY m.memory_id LIMIT {MOST_FOUND + 1}
"""  # noqa: S608 - constants


async def find_texts(session: Session, texts: Sequence[str], *, short: bool) -> list[UUID]:
    """Returns the live memories that hold one of the texts, and the cues and notes that one of the texts holds.

    Texts below SHORTEST_HELD are looked for within others only with `short`, else they find equal texts.
    This statement and the others return one more than MOST_FOUND where there are more.
    """
    return await session.column(_HOLDING, {"texts": list(texts), "short": short})


async def find_cues(session: Session, ids: Sequence[UUID], texts: Sequence[str], *, short: bool) -> list[UUID]:
    """Returns the live cues that were learnt from one of these memories, or whose quote says one of the texts."""
    return await session.column(_QUOTING, {"ids": list(ids), "texts": list(texts), "short": short})


async def evidence_of(session: Session, ids: Sequence[UUID]) -> tuple[list[str], list[UUID]]:
    """Returns the quotes of cues that are not too short to be told from others, and the turns and chunks of all."""
    rows = await session.rows(_EVIDENCE, {"ids": list(ids)})
    return [row.quote for row in rows if len(row.quote) >= SHORTEST_HELD], [row.turn_id for row in rows if row.turn_id]


async def find_links(
    session: Session, ids: Sequence[UUID], relation: str, *, both: bool = False
) -> list[tuple[UUID, str]]:
    """Returns the live memories with a link of this relation to these, and their bodies; in `both` directions if so."""
    rows = await session.rows(_LINKED, {"ids": list(ids), "relation": relation, "both": both})
    return [(one, body) for one, body in rows]
