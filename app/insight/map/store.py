"""The SQL of the map: the memories that it shows, and the layouts that were computed."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from app.foundation.db.session import Session
from app.insight.map.drawing import Cluster, Known, Material, Point, ShownMemory, StoredLayout
from app.storage.index.models import StoredModel

LAYOUTS = 8
"""Layouts that are kept for a workspace: each can have 10,000 points, and there can be 5,000 different limits."""
_LABEL_CHARACTERS = 1_000
"""Characters of each memory's title and body that the labels are made of."""
TITLE_CHARACTERS = 120
"""Characters of a text that stand for a missing title."""
LOOKED_THROUGH = 100_000
"""The newest memories that are looked through for those with a vector: 750,000 without one took 5 s."""
_FORGET_SHOWN = """
DELETE FROM graph_layouts l WHERE l.workspace_id = %(workspace_id)s AND EXISTS (
    SELECT FROM graph_points p WHERE p.workspace_id = %(workspace_id)s AND p.kind = l.kind
        AND p.node_limit = l.node_limit AND p.memory_id = ANY(%(ids)s::uuid[])
)
"""


async def newest(session: Session, model: StoredModel, *, kind: str, limit: int) -> tuple[ShownMemory, ...]:
    """Returns the newest live memories that have a vector of this model, of one kind or, for "", of all kinds.

    They are among the newest LOOKED_THROUGH.
    """
    condition = "AND m.kind = %(kind)s" if kind else ""
    statement = f"""
        SELECT m.memory_id, m.content_hash, m.kind, m.run_id, m.quality, m.final_score, m.tags,
            coalesce(nullif(m.title, ''), left(m.body, {TITLE_CHARACTERS})) AS title, m.occurred_at, m.created_at,
            coalesce(nullif(o.task_type, ''), r.task_type, '') AS task_type
        FROM (
            SELECT m.* FROM memories m WHERE m.workspace_id = %(workspace_id)s AND m.valid_until IS NULL {condition}
            ORDER BY m.created_at DESC, m.memory_id DESC LIMIT {LOOKED_THROUGH}
        ) AS m
        JOIN embeddings e
            ON e.workspace_id = %(workspace_id)s AND e.memory_id = m.memory_id AND e.model_id = {model.model_id:d}
            AND e.passage = 0
        LEFT JOIN observations o ON o.workspace_id = %(workspace_id)s AND o.memory_id = m.memory_id
        LEFT JOIN runs r ON r.workspace_id = %(workspace_id)s AND r.run_id = m.run_id
        ORDER BY m.created_at DESC, m.memory_id DESC LIMIT {limit:d}
        """  # noqa: S608 - numbers and a constant
    rows = await session.rows(statement, {"kind": kind})
    return tuple(ShownMemory(**{**row._asdict(), "tags": tuple(row.tags)}) for row in rows)


async def find_layout(session: Session, *, fingerprint: bytes, kind: str, limit: int) -> StoredLayout | None:
    """Returns a layout of exactly these memories, or else the latest layout for the same question.

    Its places come in the same statement, because another request may replace both.
    """
    row = await session.row(_LAYOUT, {"fingerprint": fingerprint, "kind": kind, "node_limit": limit})
    if row is None:
        return None
    columns = (row.xs, row.ys, row.members, row.fitteds)
    points = [Point(x=x, y=y, cluster=cluster, fitted=fitted) for x, y, cluster, fitted in zip(*columns, strict=True)]
    return StoredLayout(
        kind=row.kind,
        node_limit=row.node_limit,
        fingerprint=row.fingerprint,
        model=row.model,
        clusters=msgspec.convert(row.clusters, tuple[Cluster, ...]),
        computed_at=row.computed_at,
        places=dict(zip(zip(row.ids, row.hashes, strict=True), points, strict=True)),
    )


async def material(
    session: Session, model: StoredModel, wanted: Sequence[Known], *, beyond: Sequence[Known]
) -> Material | None:
    """Returns vectors and texts of the `wanted` memories, then vectors of the `beyond` ones whose text is unchanged.

    The vector of a long memory is the mean of its passages'.

    Returns None if a `wanted` memory has been retired or changed, or has lost its vector.
    """
    statement = f"""
        SELECT coalesce(array_agg(m.memory_id ORDER BY g.place), '{{}}') AS ids,
            coalesce(string_agg(halfvec_send(e.whole), ''::bytea ORDER BY g.place), ''::bytea) AS vectors,
            coalesce(jsonb_agg(jsonb_build_array(m.language, left(m.title || E'\\n' || m.body, {_LABEL_CHARACTERS}))
                ORDER BY g.place) FILTER (WHERE g.place <= {len(wanted):d}), '[]')::text AS texts
        FROM unnest(%(ids)s::uuid[], %(hashes)s::bytea[]) WITH ORDINALITY AS g(memory_id, content_hash, place)
        JOIN memories m ON m.workspace_id = %(workspace_id)s AND m.memory_id = g.memory_id
            AND m.content_hash = g.content_hash
        CROSS JOIN LATERAL (
            SELECT l2_normalize(avg(p.embedding)) AS whole FROM embeddings p WHERE p.workspace_id = %(workspace_id)s
                AND p.memory_id = g.memory_id AND p.model_id = {model.model_id:d} HAVING count(*) > 0
        ) AS e
        """  # noqa: S608 - numbers
    known = [*wanted, *beyond]
    given = {"ids": [memory_id for memory_id, _ in known], "hashes": [content_hash for _, content_hash in known]}
    row = await session.one(statement, given)
    if row.ids[: len(wanted)] != [memory_id for memory_id, _ in wanted]:
        return None
    return Material(ids=tuple(row.ids), vectors=bytes(row.vectors), texts=row.texts.encode())


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


async def save(session: Session, layout: StoredLayout) -> None:
    """Stores a layout and replaces the earlier one for its question. Deletes the oldest layouts of the workspace."""
    places = layout.places
    given: dict[str, Any] = {
        **{name: getattr(layout, name) for name in ("kind", "node_limit", "fingerprint", "model", "computed_at")},
        "clusters": msgspec.json.encode(layout.clusters).decode(),
        "ids": [memory_id for memory_id, _ in places],
        "hashes": [content_hash for _, content_hash in places],
        "xs": [point.x for point in places.values()],
        "ys": [point.y for point in places.values()],
        "members": [point.cluster for point in places.values()],
        "fitteds": [point.fitted for point in places.values()],
    }
    for statement in (_LOCK, _DELETE, _INSERT, _INSERT_POINTS, _FORGET):
        await session.execute(statement, given)


async def forget_layouts(session: Session, ids: Sequence[UUID]) -> None:
    """Removes the layouts that show any of these memories; the next map is computed anew."""
    await session.execute(_FORGET_OF, {"ids": list(ids)})


_LAYOUT = """
SELECT l.*, p.* FROM (
    SELECT kind, node_limit, fingerprint, model, clusters, computed_at FROM graph_layouts
    WHERE workspace_id = %(workspace_id)s
        AND (fingerprint = %(fingerprint)s OR (kind = %(kind)s AND node_limit = %(node_limit)s))
    ORDER BY fingerprint = %(fingerprint)s DESC, kind = %(kind)s AND node_limit = %(node_limit)s DESC LIMIT 1
) AS l CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(memory_id), '{}') AS ids, coalesce(array_agg(content_hash), '{}') AS hashes,
        coalesce(array_agg(x), '{}') AS xs, coalesce(array_agg(y), '{}') AS ys,
        coalesce(array_agg(cluster), '{}') AS members, coalesce(array_agg(fitted), '{}') AS fitteds
    FROM graph_points g
    WHERE g.workspace_id = %(workspace_id)s AND g.kind = l.kind AND g.node_limit = l.node_limit
) AS p
"""

# Two writers of one workspace delete the same old layouts: one waits for the other.
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('priors.graph_layouts', %(workspace_id)s))"

_DELETE = """
DELETE FROM graph_layouts WHERE workspace_id = %(workspace_id)s AND kind = %(kind)s AND node_limit = %(node_limit)s
"""

_INSERT = """
INSERT INTO graph_layouts (workspace_id, kind, node_limit, fingerprint, model, clusters, computed_at)
VALUES (
    %(workspace_id)s, %(kind)s, %(node_limit)s, %(fingerprint)s, %(model)s, %(clusters)s::jsonb, %(computed_at)s
)
"""

_INSERT_POINTS = """
INSERT INTO graph_points (workspace_id, kind, node_limit, memory_id, content_hash, x, y, cluster, fitted)
SELECT %(workspace_id)s, %(kind)s, %(node_limit)s, * FROM unnest(
    %(ids)s::uuid[], %(hashes)s::bytea[], %(xs)s::float8[], %(ys)s::float8[], %(members)s::smallint[],
    %(fitteds)s::boolean[]
) RETURNING 1
"""

_FORGET = f"""
DELETE FROM graph_layouts l USING (
    SELECT kind, node_limit FROM graph_layouts WHERE workspace_id = %(workspace_id)s
    ORDER BY written_at DESC, kind, node_limit OFFSET {LAYOUTS}
) AS old
WHERE l.workspace_id = %(workspace_id)s AND l.kind = old.kind AND l.node_limit = old.node_limit
"""  # noqa: S608 - a constant

_FORGET_OF = """
DELETE FROM graph_layouts l WHERE l.workspace_id = %(workspace_id)s AND EXISTS (
    SELECT FROM graph_points p WHERE p.workspace_id = %(workspace_id)s AND p.kind = l.kind
        AND p.node_limit = l.node_limit AND p.memory_id = ANY(%(ids)s::uuid[])
)
"""


async def forget_shown(session: Session, ids: Sequence[UUID]) -> None:
    """Removes the layouts that show one of these memories, whose words may label their clusters."""
    await session.execute(_FORGET_SHOWN, {"ids": list(ids)})
