"""The SQL of links: the dictionary of titles, and the links themselves."""

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

import msgspec

from app.foundation.db.session import Session
from app.storage.index.indexing import NAME, THESE, VECTORS, queue_for_links
from app.storage.links import relations
from app.storage.links.relations import (
    ANY_GIVEN,
    FOUND,
    MENTIONS,
    NEXT,
    ORDER,
    SAME_ENTITY,
    SAME_TASK,
    SIMILAR,
    Link,
    Linked,
)

# A text that named an earlier title of the memory no longer refers to it.
_RENAMED = """
WITH renamed AS (
    DELETE FROM titles t USING unnest(%(ids)s::uuid[], %(keys)s::text[]) AS given(memory_id, key)
    WHERE t.workspace_id = %(workspace_id)s AND t.memory_id = given.memory_id AND t.key IS DISTINCT FROM given.key
    RETURNING t.memory_id
)
DELETE FROM links
WHERE workspace_id = %(workspace_id)s AND relation = %(mentions)s AND to_id IN (SELECT memory_id FROM renamed)
"""


_ADD_TITLES = """
INSERT INTO titles (workspace_id, memory_id, key, common)
SELECT l.workspace_id, l.memory_id, given.key, EXISTS (
    SELECT 1 FROM titles k WHERE k.workspace_id = %(workspace_id)s AND k.key = given.key AND k.common
)
FROM unnest(%(ids)s::uuid[], %(keys)s::text[]) AS given(memory_id, key)
JOIN lexical l ON l.workspace_id = %(workspace_id)s AND l.memory_id = given.memory_id
WHERE given.key IS NOT NULL ORDER BY l.memory_id
ON CONFLICT (workspace_id, memory_id) DO NOTHING
"""

# A title that too many memories have names none of them any more.
_CROWDED = """
WITH crowded AS (
    UPDATE titles t SET common = true
    WHERE t.workspace_id = %(workspace_id)s AND NOT t.common AND t.key = ANY(%(keys)s::text[]) AND (
        SELECT count(*) FROM (
            SELECT 1 FROM titles o WHERE o.workspace_id = %(workspace_id)s AND o.key = t.key LIMIT %(bearers)s + 1
        ) AS few
    ) > %(bearers)s
    RETURNING t.workspace_id, t.memory_id
)
DELETE FROM links l USING crowded c
WHERE l.workspace_id = c.workspace_id AND l.to_id = c.memory_id AND l.relation = %(mentions)s
"""

_BEARERS_OF = """
SELECT key, array_agg(memory_id ORDER BY memory_id) AS bearers FROM titles
WHERE workspace_id = %(workspace_id)s AND NOT common AND key = ANY(%(keys)s::text[]) GROUP BY key
"""

_HAS_TITLES = "SELECT EXISTS (SELECT 1 FROM titles WHERE workspace_id = %(workspace_id)s AND NOT common)"


async def write_titles(session: Session, keys: Mapping[UUID, str | None]) -> None:
    """Writes the titles of these live memories into the dictionary; a title that too many have becomes common."""
    given = {"ids": keys, "keys": keys.values()}
    await session.execute(_RENAMED, {**given, "mentions": MENTIONS})
    await session.execute(_ADD_TITLES, given)
    counted = {"keys": sorted({key for key in keys.values() if key is not None})}
    await session.execute(_CROWDED, {**counted, "mentions": MENTIONS, "bearers": relations.TITLE_BEARERS})


async def has_titles(session: Session) -> bool:
    """Tells whether any memory of the workspace can be named."""
    return bool(await session.value(_HAS_TITLES))


async def bearers_of(session: Session, keys: Collection[str]) -> dict[str, list[UUID]]:
    """Returns the memories that have these titles, if they are not common."""
    rows = await session.rows(_BEARERS_OF, {"keys": keys})
    return {row.key: row.bearers for row in rows}


_GIVEN = "jsonb_populate_recordset(NULL::links, %(links)s::jsonb) AS given"
_ADD = f"""
INSERT INTO links (workspace_id, from_id, to_id, relation, weight)
SELECT %(workspace_id)s, given.from_id, given.to_id, given.relation, given.weight
FROM {_GIVEN}
JOIN memories a ON a.workspace_id = %(workspace_id)s AND a.memory_id = given.from_id
JOIN memories b ON b.workspace_id = %(workspace_id)s AND b.memory_id = given.to_id
ORDER BY given.from_id, given.relation, given.to_id
ON CONFLICT (workspace_id, from_id, relation, to_id) DO UPDATE SET weight = EXCLUDED.weight
WHERE links.weight <> EXCLUDED.weight
RETURNING xmax = 0 AS new
"""  # noqa: S608 - constants

# A title that too many texts name is a common word, which links nothing.
_FAMOUS = """
WITH famous AS (
    SELECT to_id FROM links
    WHERE workspace_id = %(workspace_id)s AND relation = %(mentions)s AND to_id = ANY(%(tos)s::uuid[])
    GROUP BY to_id HAVING count(*) > %(mentioned)s
), marked AS (
    UPDATE titles t SET common = true FROM titles o, famous f
    WHERE o.workspace_id = %(workspace_id)s AND o.memory_id = f.to_id
        AND t.workspace_id = o.workspace_id AND t.key = o.key
    RETURNING t.memory_id
)
DELETE FROM links
WHERE workspace_id = %(workspace_id)s AND relation = %(mentions)s AND to_id IN (SELECT memory_id FROM marked)
"""


async def add(session: Session, links: Collection[Link]) -> tuple[int, int]:
    """Writes links between stored memories; a known link takes the new weight.

    Returns the numbers of new links and of changed ones.
    """
    if not links:
        return 0, 0
    written = await session.column(_ADD, {"links": _as_json(links)})
    return sum(written), len(written) - sum(written)


_REMOVE = f"""
DELETE FROM links l USING {_GIVEN}
WHERE l.workspace_id = %(workspace_id)s
    AND (l.from_id, l.to_id, l.relation) = (given.from_id, given.to_id, given.relation)
"""  # noqa: S608 - constants


async def remove(session: Session, links: Collection[Link]) -> int:
    """Removes links of any weight. Returns how many of them were stored."""
    return await session.execute(_REMOVE, {"links": _as_json(links)}) if links else 0


_NO_LONGER_NAMED = f"""
DELETE FROM links l
WHERE l.workspace_id = %(workspace_id)s AND l.relation = %(mentions)s AND l.from_id = ANY(%(readers)s::uuid[])
    AND NOT EXISTS (SELECT 1 FROM {_GIVEN} WHERE given.from_id = l.from_id AND given.to_id = l.to_id)
"""  # noqa: S608 - constants

_FORGET_FOUND = """
DELETE FROM links WHERE workspace_id = %(workspace_id)s AND (
    (relation = ANY(%(both)s) AND to_id = ANY(%(ids)s::uuid[]))
    OR (relation = ANY(%(outward)s) AND from_id = ANY(%(ids)s::uuid[]))
)
"""


# They are found again after a restore. Until then they would count towards the limit of a live memory's mentions.
_FORGET_LINKS = """
DELETE FROM links WHERE workspace_id = %(workspace_id)s AND relation = ANY(%(found)s)
    AND (from_id = ANY(%(ids)s::uuid[]) OR to_id = ANY(%(ids)s::uuid[]))
"""
_FORGET_TITLES = f"DELETE FROM titles WHERE {THESE}"  # noqa: S608 - constants
_FORGET_SIMILAR = "DELETE FROM links WHERE relation = %(similar)s"


async def write_mentions(session: Session, mentions: Mapping[UUID, Sequence[UUID]]) -> None:
    """Replaces the mentions of these texts. A memory that too many texts mention then loses all its mentions."""
    links = [Link(memory_id, named, MENTIONS) for memory_id, others in mentions.items() for named in others]
    await session.execute(_NO_LONGER_NAMED, {"links": _as_json(links), "readers": mentions, "mentions": MENTIONS})
    await add(session, links)
    named = sorted({link.to_id for link in links})
    await session.execute(_FAMOUS, {"tos": named, "mentions": MENTIONS, "mentioned": relations.MENTIONED})


async def forget_found(session: Session, ids: Sequence[UUID]) -> None:
    """Removes the found links of memories whose text has changed, and queues them to be linked again.

    Links from other texts that mention one are kept: its title may be the same.
    """
    await queue_for_links(session, ids, step=VECTORS)
    await session.execute(_FORGET_FOUND, {"ids": ids, "both": [SAME_ENTITY, SIMILAR, SAME_TASK], "outward": FOUND})


async def forget_memories(session: Session, ids: Sequence[UUID]) -> None:
    """Removes the found links and the titles of retired memories; links that callers gave stay."""
    await session.execute(_FORGET_LINKS, {"ids": ids, "found": FOUND})
    await session.execute(_FORGET_TITLES, {"ids": ids})


async def forget_similar_of_all(session: Session) -> None:
    """Removes the links that were found by vectors, in all workspaces, because another model finds others."""
    await session.execute(_FORGET_SIMILAR, {"similar": SIMILAR})


def _as_json(links: Collection[Link]) -> str:
    return msgspec.json.encode([link._asdict() for link in links]).decode()


# Only live memories, as in a recall: a replaced memory's own links name its replacement.
_OF = f"""
WITH own AS (
    SELECT memory_id, source_id, ordinal FROM memories
    WHERE workspace_id = %(workspace_id)s AND memory_id = %(memory_id)s
), linked AS (
    SELECT l.relation, 'out' AS direction, l.to_id AS other, l.weight, l.created_at
    FROM links l JOIN own o ON l.workspace_id = %(workspace_id)s AND l.from_id = o.memory_id
    UNION ALL
    SELECT l.relation, 'in', l.from_id, l.weight, l.created_at
    FROM links l JOIN own o ON l.workspace_id = %(workspace_id)s AND l.to_id = o.memory_id
    UNION ALL
    (SELECT %(next)s, 'out', m.memory_id, 1, m.created_at FROM memories m JOIN own o USING (source_id)
    WHERE m.workspace_id = %(workspace_id)s AND m.ordinal > o.ordinal AND m.valid_until IS NULL
    ORDER BY m.ordinal, m.memory_id LIMIT 1)
    UNION ALL
    (SELECT %(next)s, 'in', m.memory_id, 1, m.created_at FROM memories m JOIN own o USING (source_id)
    WHERE m.workspace_id = %(workspace_id)s AND m.ordinal < o.ordinal AND m.valid_until IS NULL
    ORDER BY m.ordinal DESC, m.memory_id LIMIT 1)
)
SELECT t.relation, t.direction, m.memory_id, {NAME} AS title, m.kind, t.weight, coalesce(o.task_type, '') AS task_type,
    m.run_id, coalesce(s.uri, '') AS source, m.ordinal, m.user_id AS user, m.occurred_at, m.created_at
FROM linked t JOIN memories m ON m.workspace_id = %(workspace_id)s AND m.memory_id = t.other
LEFT JOIN observations o ON o.workspace_id = %(workspace_id)s AND o.memory_id = m.memory_id
LEFT JOIN sources s ON s.workspace_id = %(workspace_id)s AND s.source_id = m.source_id
WHERE m.valid_until IS NULL
ORDER BY coalesce(array_position(%(order)s::text[], t.relation), array_position(%(order)s::text[], %(any)s)),
    t.relation, t.direction DESC, t.weight DESC, t.created_at, m.memory_id
LIMIT %(limit)s
"""  # noqa: S608 - constants

_KNOWN = f"""
SELECT memory_id FROM memories WHERE {THESE} AND coalesce(retired_as, '') NOT IN ('deleted', 'quarantined')
ORDER BY memory_id FOR KEY SHARE
"""  # noqa: S608 - constants


async def links_of(session: Session, memory_id: UUID, limit: int) -> list[Linked]:
    """Returns at most `limit` memories that a memory is linked with, its neighbours in its source first."""
    given = {"memory_id": memory_id, "limit": limit, "order": ORDER, "any": ANY_GIVEN, "next": NEXT}
    return [Linked(**row._asdict()) for row in await session.rows(_OF, given)]


async def linkable_memories(session: Session, ids: Collection[UUID]) -> set[UUID]:
    """Returns the memories among these that can be linked; none is destroyed before the transaction ends."""
    return set(await session.column(_KNOWN, {"ids": ids}))
