"""The two arms: candidates of each, neighbours of the best, and both scores for every one of them.

The lexical arm needs no vector, so it is asked while the query is embedded; a second statement brings all together.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from psycopg import AsyncConnection

from app.db.identities import Ids
from app.index.vectors import StoredModel
from app.links.link import SIMILAR, SUPERSEDES
from app.memories.store import JOINED
from app.retrieval.rank.spreading import SPREADING

ARM_LIMIT = 60
"""Candidates from each arm, or as many as are asked for. 100 and 30 find the same on LoCoMo dev (recall@10 0.766, 0.771
and 0.775 with the neighbours of the best 10); each costs two look-ups."""
WITH_NEIGHBOURS = 10
"""The best of each arm whose neighbours join the pool: 0.771 for 10, 0.766 for all, 0.753 for none."""
NEIGHBOURHOOD = 2
"""Places before and after it in its source."""
KEPT_AT_MOST = 5_000
"""What a filter keeps is found once, by the survey, and all of it is scored by both arms, without their indexes, while
it is at most so much."""
GIVERS = 5
"""The best of each arm whose links count."""
READ_OF_A_GIVER = 16
"""Links of a relation that count of a giver in each direction, the strongest: a hub with thousands costs no more."""
LOOKED_THROUGH = 1_000
"""Of as many links, the strongest, those are looked for whose other memory is live and passes the filters."""
BROUGHT_BY_LINKS = 16
"""Memories that join the pool by links alone, those with the strongest."""


class Candidate(NamedTuple):
    """A memory in the pool, with what ranking needs of it. A tuple, because hundreds are made for an answer."""

    memory_id: UUID
    title: str
    source_id: UUID | None
    ordinal: int | None
    final_score: float | None
    quality: int
    happened_at: datetime
    similarity: float | None
    """Cosine similarity, -1 to 1; None where it has no vector."""
    bm25: float
    """BM25 score; 0 where it has none of the query's terms."""
    giver: int | None = None
    """Its number among the best of the arms, whose links count; None where it is none of them."""
    ties: Sequence[Sequence[Any]] | None = None
    """Its links with givers, as `spreading.Tie` has them."""


class Worded(NamedTuple):
    """What the lexical arm found, best first, as Postgres writes arrays."""

    ids: str
    scores: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the arms are asked: an arm without its representation of the query stays silent."""

    workspace_id: int
    model: StoredModel | None
    vector: str | None
    match: str | None
    wider: str | None
    """What the lexical arm looks for where a filter leaves too few of what `match` brings; None: nothing more."""
    weights: str | None
    indexed: bool
    """Whether the workspace's vectors have an HNSW index."""
    kept: Ids | None
    """The memories that pass the filters, where they are few."""
    clauses: tuple[str, ...]
    """The filters' conditions over `memories m LEFT JOIN sources s`."""
    values: Mapping[str, Any]
    least: int
    """Candidates that the answer needs at least."""
    worded: Worded | None = None
    """What `worded` gave for it; None where the lexical arm is silent."""
    linked: bool = True
    """Whether links count."""


@dataclass(frozen=True, slots=True)
class Shape:
    """All that changes the statement's text; everything else is a parameter."""

    model: StoredModel | None
    vector_workspace: int | None
    """The workspace whose HNSW index answers; None: the exact scan does."""
    lexical: bool
    kept: bool
    """Whether what the filters keep is given by its ids."""
    clauses: tuple[str, ...]
    limit: int
    """Candidates from each arm. In the text, because the planner takes an unknown limit for a tenth of the table."""
    linked: bool


def shape_of(question: Question) -> Shape:
    """How the arms are asked.

    An HNSW scan under a filter drops what it should find, so a filter is always answered exactly.
    """
    use_index = question.indexed and not question.clauses
    return Shape(
        model=question.model if question.vector else None,
        vector_workspace=question.workspace_id if use_index else None,
        lexical=question.worded is not None,
        kept=question.kept is not None,
        clauses=question.clauses,
        limit=ARM_LIMIT * math.ceil(question.least / ARM_LIMIT),
        linked=question.linked,
    )


def values_of(question: Question) -> dict[str, Any]:
    """The statement's parameters; it ignores those that its shape has no use for."""
    return {
        **question.values,
        "workspace_id": question.workspace_id,
        "vector": question.vector,
        "match": question.match,
        "weights": question.weights,
        "kept": question.kept or Ids(b""),
        **(question.worded._asdict() if question.worded else {}),
    }


async def worded(connection: AsyncConnection, question: Question) -> Worded | None:
    """The lexical arm's candidates; None where the question has no words for it.

    The rarest terms are chosen for the workspace. Where a filter keeps too few of what has them, all terms are asked.
    """
    if question.match is None:
        return None
    shape = shape_of(question)
    statement = f"SELECT array_agg(memory_id)::text, array_agg(bm25)::text, count(*) FROM ({lexical_arm(shape)}) AS arm"  # noqa: S608 - as below
    values = values_of(question)
    ids, scores, count = await _one(connection, statement, values)
    if count < shape.limit and question.clauses and question.kept is None and question.wider is not None:
        ids, scores, _ = await _one(connection, statement, {**values, "match": question.wider})
    return Worded(ids or "{}", scores or "{}")


async def _one(connection: AsyncConnection, statement: str, values: Mapping[str, Any]) -> tuple[Any, ...]:
    return await (await connection.execute(statement.encode(), values)).fetchone() or (None, None, 0)


async def candidates(connection: AsyncConnection, question: Question) -> list[Candidate]:
    """The pool: candidates of both arms and neighbours of the best, each with both scores."""
    cursor = await connection.execute(pool_statement(shape_of(question)), values_of(question))
    return [Candidate._make(row) for row in await cursor.fetchall()]


WORDED = "SELECT * FROM unnest(%(ids)s::uuid[], %(scores)s::float8[]) AS arm(memory_id, bm25)"


@lru_cache(maxsize=256)
def pool_statement(shape: Shape) -> bytes:
    """The statement for a question of this shape."""
    arms = {}
    if shape.model is not None:
        arms["vector_arm"] = vector_arm(shape)
    if shape.lexical:
        arms["lexical_arm"] = WORDED
    found = ", ".join(f"{name} AS MATERIALIZED ({arm})" for name, arm in arms.items())
    chosen = " UNION ".join(f"SELECT memory_id FROM {name}" for name in arms)  # noqa: S608 - constants
    best = " UNION ".join(f"(SELECT memory_id FROM {name} LIMIT {WITH_NEIGHBOURS})" for name in arms)  # noqa: S608 - constants
    givers = " UNION ".join(f"(SELECT memory_id FROM {name} LIMIT {GIVERS})" for name in arms)  # noqa: S608 - constants
    joins = "".join(f" LEFT JOIN {name} USING (memory_id)" for name in arms)
    return f"""
    WITH {found}, best AS ({best}), neighbour AS MATERIALIZED (
        SELECT m.memory_id FROM best
        JOIN memories c ON c.workspace_id = %(workspace_id)s AND c.memory_id = best.memory_id
        JOIN memories m ON m.workspace_id = %(workspace_id)s AND m.source_id = c.source_id
            AND m.ordinal BETWEEN c.ordinal::bigint - {NEIGHBOURHOOD} AND c.ordinal::bigint + {NEIGHBOURHOOD}
            AND m.valid_until IS NULL
        {SOURCES if shape.clauses else ""}
        WHERE {_all(shape.clauses)}
    ), near AS MATERIALIZED ({chosen} UNION SELECT memory_id FROM neighbour)
    {_linked(shape, givers) if shape.linked else UNLINKED}
    SELECT m.memory_id, m.title, m.source_id, m.ordinal, m.final_score, m.quality,
        coalesce(m.occurred_at, m.created_at) AS happened_at, {_similarity(shape)} AS similarity,
        {_bm25(shape)} AS bm25, givers.giver, tied.ties
    FROM pool {joins} LEFT JOIN givers USING (memory_id) LEFT JOIN tied USING (memory_id)
    JOIN memories m ON m.workspace_id = %(workspace_id)s AND m.memory_id = pool.memory_id
    """.encode()  # noqa: S608 - built of constants and numbers; every value is a parameter


SOURCES = "LEFT JOIN sources s ON s.workspace_id = m.workspace_id AND s.source_id = m.source_id"
UNLINKED = """, pool AS (SELECT memory_id FROM near),
    givers AS (SELECT NULL::uuid AS memory_id, NULL::integer AS giver WHERE false),
    tied AS (SELECT NULL::uuid AS memory_id, NULL::json AS ties WHERE false)"""


def _linked(shape: Shape, givers: str) -> str:
    """Memories that links with the best bring into the pool, and the links of all that are in it."""
    shares = " ".join(f"WHEN '{relation}' THEN {share}" for relation, share in SPREADING.items())
    outward = [relation for relation in SPREADING if relation != SUPERSEDES]
    return f""", givers AS MATERIALIZED (
        SELECT memory_id, row_number() OVER (ORDER BY memory_id)::integer AS giver FROM ({givers}) AS best
    ), read AS MATERIALIZED (
        {_read(shape, outward, "in", giver="from_id", other="to_id")}
        UNION ALL {_read(shape, list(SPREADING), "out", giver="to_id", other="from_id")}
    ), tie AS MATERIALIZED (
        SELECT read.*, d.degree, read.weight * CASE relation {shares} END / sqrt(d.degree) AS passed
        FROM read JOIN (
            SELECT giver, relation, greatest(1, sum(weight)) AS degree FROM read GROUP BY 1, 2
        ) AS d USING (giver, relation)
    ), brought AS MATERIALIZED (
        SELECT other AS memory_id FROM tie WHERE other NOT IN (SELECT memory_id FROM near)
        GROUP BY other ORDER BY max(passed) DESC, other LIMIT {BROUGHT_BY_LINKS}
    ), pool AS MATERIALIZED (SELECT memory_id FROM near UNION ALL SELECT memory_id FROM brought),
    tied AS MATERIALIZED (
        SELECT other AS memory_id,
            json_agg(json_build_array(giver, relation, direction, weight, degree) ORDER BY giver) AS ties
        FROM tie JOIN pool ON pool.memory_id = tie.other GROUP BY other
    )"""  # noqa: S608 - constants and the filters' conditions


def _read(shape: Shape, relations: Sequence[str], direction: str, *, giver: str, other: str) -> str:
    """The strongest links of each giver and relation with memories that may be found; `direction` as these see it.

    Read in the order of an index, whose last columns say all: OFFSET keeps the planner from joining in another.
    """
    return f"""SELECT g.giver, strongest.other, r.relation, '{direction}' AS direction, strongest.weight
        FROM givers g CROSS JOIN unnest(ARRAY[{", ".join(f"'{relation}'" for relation in relations)}]) AS r(relation)
        CROSS JOIN LATERAL (
            SELECT l.other, l.weight FROM (
                SELECT l.{other} AS other, l.weight FROM links l
                WHERE l.workspace_id = %(workspace_id)s AND l.{giver} = g.memory_id AND l.relation = r.relation
                    AND l.relation <> '{SIMILAR}'
                ORDER BY l.weight DESC, l.{other} LIMIT {LOOKED_THROUGH}
            ) AS l CROSS JOIN LATERAL (
                SELECT 1 FROM memories m {SOURCES if shape.clauses else ""}
                WHERE m.workspace_id = %(workspace_id)s AND m.memory_id = l.other AND m.valid_until IS NULL
                    AND {_all(shape.clauses)} OFFSET 0
            ) AS found
            ORDER BY l.weight DESC, l.other LIMIT {READ_OF_A_GIVER}
        ) AS strongest"""  # noqa: S608 - constants and the filters' conditions


def vector_arm(shape: Shape) -> str:
    """The nearest memories, nearest first: by the index where the shape says so, else by an exact scan."""
    assert shape.model is not None, "the caller asks for it only with a model"  # noqa: S101
    distance = _distance(shape.model)
    workspace = "%(workspace_id)s" if shape.vector_workspace is None else f"{shape.vector_workspace:d}"
    source, kept = _filtered(shape, f"{shape.model.partition} e", "e")
    measured = f"SELECT e.memory_id, {distance} AS distance FROM {source} WHERE e.workspace_id = {workspace} AND {kept}"  # noqa: S608 - constants and numbers
    # OFFSET keeps the planner from an index that would drop what the filter keeps, and measures each once.
    fence, ties = ("", "") if shape.vector_workspace is not None else ("OFFSET 0", ", memory_id")
    return f"""SELECT memory_id, 1 - distance AS similarity FROM ({measured} {fence}) AS arm
        ORDER BY distance{ties} LIMIT {shape.limit:d}"""  # noqa: S608 - as above


def lexical_arm(shape: Shape) -> str:
    """The best memories by BM25, best first: of those with one of the rarest terms, or of all that pass a filter."""
    source, kept = _filtered(shape, "lexical l", "l")
    matching = "true" if shape.kept else "l.terms @@ %(match)s::tsquery"
    return f"""SELECT memory_id, -score AS bm25 FROM (
            SELECT l.memory_id, l.weights <#> %(weights)s::sparsevec AS score FROM {source}
            WHERE l.workspace_id = %(workspace_id)s AND {matching} AND {kept} OFFSET 0
        ) AS scored WHERE score < 0 ORDER BY score, memory_id LIMIT {shape.limit:d}"""  # noqa: S608 - constants and numbers


def _filtered(shape: Shape, table: str, alias: str) -> tuple[str, str]:
    """What an arm reads from, and the condition of what the filters keep."""
    if shape.kept:
        return table, f"{alias}.memory_id = ANY(%(kept)s::uuid[])"
    if shape.clauses:
        return f"{JOINED} JOIN {table} USING (workspace_id, memory_id)", _all(shape.clauses)
    return table, "true"


def _similarity(shape: Shape) -> str:
    if shape.model is None:
        return "NULL::float8"
    return f"""coalesce(vector_arm.similarity, (
            SELECT 1 - ({_distance(shape.model)}) FROM {shape.model.partition} e
            WHERE e.workspace_id = %(workspace_id)s AND e.memory_id = pool.memory_id
        ))"""  # noqa: S608 - constants and numbers


def _bm25(shape: Shape) -> str:
    if not shape.lexical:
        return "0::float8"
    return """coalesce(lexical_arm.bm25, (
            SELECT -(l.weights <#> %(weights)s::sparsevec) FROM lexical l
            WHERE l.workspace_id = %(workspace_id)s AND l.memory_id = pool.memory_id
        ), 0)"""


def _distance(model: StoredModel) -> str:
    return f"e.embedding::halfvec({model.dimension:d}) <=> %(vector)s::halfvec({model.dimension:d})"


def _all(clauses: Sequence[str]) -> str:
    return " AND ".join(clauses) or "true"
