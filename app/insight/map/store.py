"""The SQL of the map: the memories that it shows, and the maps that were drawn."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from app.foundation.db.session import Session
from app.insight.map.drawing import Cluster, DrawnMap, Point, ShownMemory
from app.insight.map.layout import Job
from app.storage.index.models import StoredModel
from app.storage.memories.store import as_json

LAYOUTS = 8
"""Maps that are kept for a user of a workspace: there can be 4,000 different limits."""
_LABEL_CHARACTERS = 1_000
"""Characters of each memory's title and body that the labels are made of."""
TITLE_CHARACTERS = 120
"""Characters of a text that stand for a missing title."""
LOOKED_THROUGH = 100_000
"""The newest memories that are looked through for those with a vector: 750,000 without one took 5 s."""
_OWN = "workspace_id = %(workspace_id)s AND user_id = %(user)s"
_FIND = f"""
SELECT memory_ids, xs, ys, members, clusters, computed_at FROM maps
WHERE {_OWN} AND kind = %(kind)s AND node_limit = %(node_limit)s
"""  # noqa: S608 - a constant
_SAVE = """
INSERT INTO maps (workspace_id, kind, node_limit, clusters, memory_ids, xs, ys, members, computed_at)
VALUES (
    %(workspace_id)s, %(kind)s, %(node_limit)s, %(clusters)s::jsonb, %(memory_ids)s::uuid[], %(xs)s::float8[],
    %(ys)s::float8[], %(members)s::smallint[], %(computed_at)s
)
ON CONFLICT (workspace_id, user_id, kind, node_limit) DO UPDATE SET clusters = EXCLUDED.clusters,
    memory_ids = EXCLUDED.memory_ids, xs = EXCLUDED.xs, ys = EXCLUDED.ys, members = EXCLUDED.members,
    computed_at = EXCLUDED.computed_at
"""
_COUNT = """
SELECT count(*) AS number FROM memories WHERE workspace_id = %(workspace_id)s AND memory_id = ANY(%(ids)s::uuid[])
"""
_FORGET_OLD = f"""
DELETE FROM maps WHERE {_OWN} AND computed_at <= (
    SELECT computed_at FROM maps WHERE {_OWN} ORDER BY computed_at DESC OFFSET {LAYOUTS} LIMIT 1
)
"""  # noqa: S608 - constants
_FORGET_SHOWN = "DELETE FROM maps WHERE workspace_id = %(workspace_id)s AND memory_ids && %(ids)s::uuid[]"
_FORGET_USER = "DELETE FROM maps WHERE workspace_id = %(workspace_id)s AND user_id = %(user)s"


async def newest(session: Session, model: StoredModel, *, kind: str, limit: int) -> list[ShownMemory]:
    """Returns the newest live memories that have a vector of this model, of one kind or, for "", of all kinds.

    They are among the newest LOOKED_THROUGH.
    """
    condition = "AND m.kind = %(kind)s" if kind else ""
    statement = f"""
        SELECT m.memory_id, m.kind, m.run_id, m.quality, m.final_score, m.tags,
            coalesce(nullif(m.title, ''), left(m.body, {TITLE_CHARACTERS})) AS title, m.occurred_at, m.created_at,
            coalesce(nullif(o.task_type, ''), r.task_type, '') AS task_type, coalesce(o.verdict, '') AS verdict,
            coalesce(s.uri, '') AS source, m.user_id AS user
        FROM (
            SELECT m.* FROM memories m WHERE m.workspace_id = %(workspace_id)s AND m.valid_until IS NULL {condition}
            ORDER BY m.created_at DESC, m.memory_id DESC LIMIT {LOOKED_THROUGH}
        ) AS m
        JOIN embeddings e
            ON e.workspace_id = %(workspace_id)s AND e.memory_id = m.memory_id AND e.model_id = {model.model_id:d}
            AND e.passage = 0
        LEFT JOIN observations o ON o.workspace_id = %(workspace_id)s AND o.memory_id = m.memory_id
        LEFT JOIN runs r ON r.workspace_id = %(workspace_id)s AND r.run_id = m.run_id
        LEFT JOIN sources s ON s.workspace_id = %(workspace_id)s AND s.source_id = m.source_id
        ORDER BY m.created_at DESC, m.memory_id DESC LIMIT {limit:d}
        """  # noqa: S608 - numbers and a constant
    return await session.rows_as(ShownMemory, statement, {"kind": kind})


async def material(session: Session, model: StoredModel, ids: Sequence[UUID]) -> tuple[Sequence[UUID], Job]:
    """Returns the memories among these that still have a vector, and their vectors and texts.

    The vector of a long memory is the mean of its passages'.
    """
    statement = f"""
        SELECT coalesce(array_agg(m.memory_id ORDER BY g.place), '{{}}') AS ids,
            coalesce(string_agg(halfvec_send(e.whole), ''::bytea ORDER BY g.place), ''::bytea) AS vectors,
            coalesce(jsonb_agg(jsonb_build_array(m.language, left(m.title || E'\\n' || m.body, {_LABEL_CHARACTERS}))
                ORDER BY g.place), '[]')::text AS texts
        FROM unnest(%(ids)s::uuid[]) WITH ORDINALITY AS g(memory_id, place)
        JOIN memories m ON m.workspace_id = %(workspace_id)s AND m.memory_id = g.memory_id
        CROSS JOIN LATERAL (
            SELECT l2_normalize(avg(p.embedding)) AS whole FROM embeddings p WHERE p.workspace_id = %(workspace_id)s
                AND p.memory_id = g.memory_id AND p.model_id = {model.model_id:d} HAVING count(*) > 0
        ) AS e
        """  # noqa: S608 - numbers
    row = await session.one(statement, {"ids": list(ids)})
    texts = msgspec.json.decode(row.texts, type=list[tuple[str, str]])
    return row.ids, Job(model.dimension, bytes(row.vectors), texts)


async def lexemes(session: Session, words: Sequence[tuple[str, str]]) -> list[str]:
    """Returns the lexeme of each word; "" for a stop word of its language, or of English or Russian.

    Reports mix languages: a text that is indexed as English may have Russian stop words.
    """
    statement = """
        SELECT CASE WHEN to_tsvector('english', word) = '' OR to_tsvector('russian', word) = '' THEN ''
            ELSE array_to_string(tsvector_to_array(priors_terms(CAST(language AS regconfig), word)), ' ') END
        FROM unnest(%(words)s::text[], %(languages)s::text[]) WITH ORDINALITY AS g(word, language, place)
        ORDER BY place
        """
    given = {"words": [word for word, _ in words], "languages": [language for _, language in words]}
    return await session.column(statement, given)


async def find(session: Session, *, kind: str, limit: int) -> DrawnMap | None:
    """Returns the map that was drawn for a question of this session's user."""
    row = await session.row(_FIND, {"user": session.user, "kind": kind, "node_limit": limit})
    if row is None:
        return None
    points = map(Point, row.xs, row.ys, row.members)
    return DrawnMap(
        places=dict(zip(row.memory_ids, points, strict=True)),
        clusters=msgspec.convert(row.clusters, Sequence[Cluster]),
        computed_at=row.computed_at,
    )


async def save(session: Session, drawn: DrawnMap, *, kind: str, limit: int) -> None:
    """Stores a map in the place of the earlier one for its question. Deletes the user's oldest maps."""
    xs, ys, members = zip(*drawn.places.values(), strict=True)
    given: dict[str, Any] = {
        "kind": kind,
        "user": session.user,
        "node_limit": limit,
        "clusters": as_json(drawn.clusters),
        "memory_ids": list(drawn.places),
        "xs": list(xs),
        "ys": list(ys),
        "members": list(members),
        "computed_at": drawn.computed_at,
    }
    for statement in (_SAVE, _FORGET_OLD):
        await session.execute(statement, given)


async def all_exist(session: Session, ids: Sequence[UUID]) -> bool:
    """Tells if none of these memories was destroyed."""
    found = await session.one(_COUNT, {"ids": list(ids)})
    return bool(found.number == len(ids))


async def forget_shown(session: Session, ids: Sequence[UUID]) -> None:
    """Removes the maps that show one of these memories, whose words may label their clusters."""
    await session.execute(_FORGET_SHOWN, {"ids": list(ids)})


async def forget_user(session: Session, user: str) -> None:
    """Removes the maps of a user."""
    await session.execute(_FORGET_USER, {"user": user})
