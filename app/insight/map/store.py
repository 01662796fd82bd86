"""The SQL of the graph: which memories it shows, and the layouts that were computed."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.index.vectors import StoredModel
from app.insight.map.values import Cluster, Known, Material, Point, Shown, StoredLayout

LAYOUTS = 8
"""Kept of a workspace: each can have 10,000 points, and anybody can ask for 5,000 limits."""
LABEL_CHARACTERS = 1_000
"""Of each memory's title and body that the labels are made of."""
TITLE_CHARACTERS = 120
"""Of the text of a memory without a title, which stand for it."""


async def freeze(connection: AsyncConnection) -> None:
    """What this transaction reads is of one moment, though others write."""
    await connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"))


async def newest(
    connection: AsyncConnection, workspace_id: int, model: StoredModel, *, kind: str, limit: int
) -> tuple[Shown, ...]:
    """The newest live memories that have a vector of this model; of one kind, unless that is ""."""
    condition = "AND m.kind = :kind" if kind else ""
    statement = text(f"""
        SELECT m.memory_id, m.content_hash, m.kind, m.run_id, m.quality, m.final_score, m.tags,
            coalesce(nullif(m.title, ''), left(m.body, {TITLE_CHARACTERS})) AS title, m.occurred_at, m.created_at,
            coalesce(nullif(o.task_type, ''), r.task_type, '') AS task_type
        FROM memories m
        JOIN embeddings e
            ON e.workspace_id = m.workspace_id AND e.memory_id = m.memory_id AND e.model_id = {model.model_id:d}
        LEFT JOIN observations o ON o.workspace_id = m.workspace_id AND o.memory_id = m.memory_id
        LEFT JOIN runs r ON r.workspace_id = m.workspace_id AND r.run_id = m.run_id
        WHERE m.workspace_id = :workspace_id AND m.valid_until IS NULL {condition}
        ORDER BY m.created_at DESC, m.memory_id DESC LIMIT {limit:d}
        """)  # noqa: S608 - numbers and a constant
    rows = await connection.execute(statement, {"workspace_id": workspace_id, **({"kind": kind} if kind else {})})
    return tuple(
        Shown(**{**row, "content_hash": bytes(row["content_hash"]), "tags": tuple(row["tags"])})
        for row in rows.mappings()
    )


async def waiting(connection: AsyncConnection, workspace_id: int) -> int:
    """How many memories of the workspace wait for their vector."""
    statement = text("SELECT count(*) FROM pending_embeddings WHERE workspace_id = :workspace_id")
    return int((await connection.execute(statement, {"workspace_id": workspace_id})).scalar_one())


async def find_layout(
    connection: AsyncConnection, workspace_id: int, *, fingerprint: bytes, kind: str, limit: int
) -> StoredLayout | None:
    """A layout of the very same memories, or else the last one that the same question got."""
    statement = text("""
        SELECT kind, node_limit, fingerprint, model, clusters, computed_at FROM graph_layouts
        WHERE workspace_id = :workspace_id
            AND (fingerprint = :fingerprint OR (kind = :kind AND node_limit = :node_limit))
        ORDER BY fingerprint = :fingerprint DESC, kind = :kind AND node_limit = :node_limit DESC LIMIT 1
        """)
    given = {"workspace_id": workspace_id, "fingerprint": fingerprint, "kind": kind, "node_limit": limit}
    row = (await connection.execute(statement, given)).mappings().one_or_none()
    if row is None:
        return None
    clusters = msgspec.convert(row["clusters"], tuple[Cluster, ...])
    return StoredLayout(**{**row, "fingerprint": bytes(row["fingerprint"]), "clusters": clusters})


async def points(connection: AsyncConnection, workspace_id: int, layout: StoredLayout) -> dict[Known, Point]:
    """The places of a layout."""
    statement = text("""
        SELECT memory_id, content_hash, x, y, cluster, fitted FROM graph_points
        WHERE workspace_id = :workspace_id AND kind = :kind AND node_limit = :node_limit
        """)
    given = {"workspace_id": workspace_id, "kind": layout.kind, "node_limit": layout.node_limit}
    return {
        (row.memory_id, bytes(row.content_hash)): Point(x=row.x, y=row.y, cluster=row.cluster, fitted=row.fitted)
        for row in await connection.execute(statement, given)
    }


async def material(
    connection: AsyncConnection,
    workspace_id: int,
    model: StoredModel,
    wanted: Sequence[Known],
    *,
    beyond: Sequence[Known],
) -> Material:
    """Vectors and texts of these memories, then vectors of those `beyond` them that still have one and this text."""
    statement = text(f"""
        SELECT coalesce(array_agg(m.memory_id ORDER BY g.place), '{{}}') AS ids,
            coalesce(string_agg(halfvec_send(e.embedding), ''::bytea ORDER BY g.place), ''::bytea) AS vectors,
            coalesce(jsonb_agg(jsonb_build_array(m.language, left(m.title || E'\\n' || m.body, {LABEL_CHARACTERS}))
                ORDER BY g.place) FILTER (WHERE g.place <= {len(wanted):d}), '[]')::text AS texts
        FROM unnest(CAST(:ids AS uuid[]), CAST(:hashes AS bytea[])) WITH ORDINALITY AS g(memory_id, content_hash, place)
        JOIN memories m ON m.workspace_id = :workspace_id AND m.memory_id = g.memory_id
            AND m.content_hash = g.content_hash
        JOIN embeddings e ON e.workspace_id = :workspace_id AND e.memory_id = g.memory_id
            AND e.model_id = {model.model_id:d}
        """)  # noqa: S608 - numbers
    known = [*wanted, *beyond]
    given = {"ids": [memory_id for memory_id, _ in known], "hashes": [content_hash for _, content_hash in known]}
    row = (await connection.execute(statement, {**given, "workspace_id": workspace_id})).one()
    return Material(ids=tuple(row.ids), vectors=bytes(row.vectors), texts=row.texts.encode())


async def lexemes(connection: AsyncConnection, words: Sequence[tuple[str, str]]) -> list[str]:
    """What Postgres indexes each word by; "" for a stop word of its language, or of English or Russian.

    Reports mix languages: a text that is indexed as English has Russian stop words all the same.
    """
    statement = text("""
        SELECT CASE WHEN to_tsvector('english', word) = '' OR to_tsvector('russian', word) = '' THEN ''
            ELSE array_to_string(tsvector_to_array(to_tsvector(CAST(language AS regconfig), word)), ' ') END
        FROM unnest(CAST(:words AS text[]), CAST(:languages AS text[])) WITH ORDINALITY AS g(word, language, place)
        ORDER BY place
        """)
    given = {"words": [word for word, _ in words], "languages": [language for _, language in words]}
    return list((await connection.execute(statement, given)).scalars())


async def save(
    connection: AsyncConnection, workspace_id: int, layout: StoredLayout, places: Mapping[Known, Point]
) -> None:
    """Store a layout in the place of the one that its question got before. The oldest of the workspace go."""
    given: dict[str, Any] = {
        "workspace_id": workspace_id,
        "kind": layout.kind,
        "node_limit": layout.node_limit,
    }
    await connection.execute(LOCK, {"workspace_id": workspace_id})
    await connection.execute(DELETE, given)
    clusters = msgspec.json.encode(layout.clusters).decode()
    await connection.execute(
        INSERT,
        {
            **given,
            "fingerprint": layout.fingerprint,
            "model": layout.model,
            "clusters": clusters,
            "computed_at": layout.computed_at,
        },
    )
    await connection.execute(INSERT_POINTS, {**given, **_columns(places)})
    await connection.execute(FORGET, {"workspace_id": workspace_id})


def _columns(places: Mapping[Known, Point]) -> dict[str, list[Any]]:
    return {
        "ids": [memory_id for memory_id, _ in places],
        "hashes": [content_hash for _, content_hash in places],
        **{f"{name}s": [getattr(point, name) for point in places.values()] for name in ("x", "y", "cluster", "fitted")},
    }


# Two that write layouts of one workspace forget the same old ones: they take turns.
LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended('priors.graph_layouts', :workspace_id))")

DELETE = text("""
DELETE FROM graph_layouts WHERE workspace_id = :workspace_id AND kind = :kind AND node_limit = :node_limit
""")

INSERT = text("""
INSERT INTO graph_layouts (workspace_id, kind, node_limit, fingerprint, model, clusters, computed_at)
VALUES (:workspace_id, :kind, :node_limit, :fingerprint, :model, CAST(:clusters AS jsonb), :computed_at)
""")

INSERT_POINTS = text("""
INSERT INTO graph_points (workspace_id, kind, node_limit, memory_id, content_hash, x, y, cluster, fitted)
SELECT :workspace_id, :kind, :node_limit, * FROM unnest(
    CAST(:ids AS uuid[]), CAST(:hashes AS bytea[]), CAST(:xs AS float8[]), CAST(:ys AS float8[]),
    CAST(:clusters AS smallint[]), CAST(:fitteds AS boolean[])
)
""")

FORGET = text(f"""
DELETE FROM graph_layouts WHERE workspace_id = :workspace_id AND (kind, node_limit) IN (
    SELECT kind, node_limit FROM graph_layouts WHERE workspace_id = :workspace_id
    ORDER BY written_at DESC, kind, node_limit OFFSET {LAYOUTS}
)
""")  # noqa: S608 - a constant
