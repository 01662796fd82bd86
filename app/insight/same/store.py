"""The SQL that finds texts which hold another text, and what was made of them."""

from collections.abc import Sequence
from uuid import UUID

from app.foundation.db.session import Session

MOST_FOUND = 500
"""Memories that one statement returns. A person looks through them before they go."""
SHORTEST_QUOTED = 20
"""Characters of a lesson or quote that is looked for within another text; a shorter one, as "Yes, do it.", stands in
texts that say something else."""
# Marks, blanks and case are no part of what is said: "- **Never** drop" says the same as "never drop".
_PLAIN = "lower(regexp_replace({text}, '[^[:alnum:]]+', ' ', 'g'))"
_GIVEN = f"(SELECT trim({_PLAIN.format(text='one')}) AS text FROM unnest(%(texts)s::text[]) AS one) AS given"  # noqa: S608 - constants
_LIVE = "m.workspace_id = %(workspace_id)s AND m.valid_until IS NULL"
_HOLDING = f"""
SELECT m.memory_id FROM memories m CROSS JOIN {_GIVEN}
WHERE {_LIVE} AND given.text <> '' AND (
    strpos({_PLAIN.format(text="m.title || ' ' || m.body")}, given.text) > 0
    OR m.kind IN ('cue', 'note') AND length(m.body) >= {SHORTEST_QUOTED}
        AND strpos(given.text, trim({_PLAIN.format(text="m.body")})) > 0
)
GROUP BY m.memory_id ORDER BY m.memory_id LIMIT {MOST_FOUND}
"""  # noqa: S608 - constants
_QUOTING = f"""
SELECT DISTINCT m.memory_id FROM cue_evidence e JOIN memories m USING (workspace_id, memory_id) CROSS JOIN {_GIVEN}
WHERE {_LIVE} AND (
    e.turn_id = ANY(%(ids)s::uuid[])
    OR length(e.quote) >= {SHORTEST_QUOTED} AND strpos(given.text, trim({_PLAIN.format(text="e.quote")})) > 0
    OR given.text <> '' AND strpos({_PLAIN.format(text="e.quote")}, given.text) > 0
)
ORDER BY m.memory_id LIMIT {MOST_FOUND}
"""  # noqa: S608 - constants
_EVIDENCE = """
SELECT quote, turn_id FROM cue_evidence WHERE workspace_id = %(workspace_id)s AND memory_id = ANY(%(ids)s::uuid[])
ORDER BY memory_id, place
"""
_LINKED = f"""
SELECT DISTINCT m.memory_id, m.title, m.body FROM links l JOIN memories m ON m.workspace_id = l.workspace_id
    AND m.memory_id = CASE WHEN l.from_id = ANY(%(ids)s::uuid[]) THEN l.to_id ELSE l.from_id END
WHERE {_LIVE} AND l.relation = %(relation)s
    AND (l.to_id = ANY(%(ids)s::uuid[]) OR %(both)s AND l.from_id = ANY(%(ids)s::uuid[]))
ORDER BY m.memory_id LIMIT {MOST_FOUND}
"""  # noqa: S608 - constants


async def find_texts(session: Session, texts: Sequence[str]) -> list[UUID]:
    """Returns the live memories that hold one of the texts, and the cues and notes that one of the texts holds."""
    return await session.column(_HOLDING, {"texts": list(texts)})


async def find_cues(session: Session, ids: Sequence[UUID], texts: Sequence[str]) -> list[UUID]:
    """Returns the live cues that were learnt from one of these memories, or whose quote says one of the texts."""
    return await session.column(_QUOTING, {"ids": list(ids), "texts": list(texts)})


async def evidence_of(session: Session, ids: Sequence[UUID]) -> tuple[list[str], list[UUID]]:
    """Returns the quotes of cues, and the turns and chunks that hold them."""
    rows = await session.rows(_EVIDENCE, {"ids": list(ids)})
    return [row.quote for row in rows if row.quote], [row.turn_id for row in rows if row.turn_id]


async def find_links(
    session: Session, ids: Sequence[UUID], relation: str, *, both: bool = False
) -> list[tuple[UUID, str]]:
    """Returns the live memories with a link of this relation to these, and their texts; in `both` directions if so."""
    rows = await session.rows(_LINKED, {"ids": list(ids), "relation": relation, "both": both})
    return [(row.memory_id, f"{row.title}\n{row.body}") for row in rows]
