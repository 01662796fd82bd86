"""The two arms in one statement: candidates of each, their neighbours, and both scores for every one of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.embeddings.store import INDEXED_FROM, StoredModel
from app.memories.store import JOINED

ARM_LIMIT = 100
"""Candidates from each arm."""
NEIGHBOURHOOD = 2
"""Places before and after a candidate in its source that join the pool."""
SCANNED_LEXICALLY = 5_000
"""Memories that pass a filter are all scored, without the word index, while they are at most so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A memory in the pool, with what ranking needs of it."""

    memory_id: UUID
    source_id: UUID | None
    ordinal: int | None
    final_score: float | None
    quality: int
    happened_at: datetime
    similarity: float | None
    """Cosine similarity, -1 to 1; None where it has no vector."""
    bm25: float
    """BM25 score; 0 where it has none of the query's terms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the arms are asked: an arm without its representation of the query stays silent."""

    workspace_id: int
    model: StoredModel | None
    vector: str | None
    match: str | None
    weights: str | None
    indexed: bool
    """Whether the workspace's vectors have an HNSW index."""
    eligible: int
    clauses: tuple[str, ...]
    """The filters' conditions over `memories m LEFT JOIN sources s`."""
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Shape:
    """All that changes the statement's text; everything else is a parameter."""

    model: StoredModel | None
    vector_workspace: int | None
    """The workspace whose HNSW index answers; None: the exact scan does."""
    lexical: bool
    word_index: bool
    clauses: tuple[str, ...]


async def candidates(connection: AsyncConnection, question: Question) -> list[Candidate]:
    """The pool: candidates of both arms and their neighbours, each with both scores.

    An HNSW scan under a filter drops what it should find, so a filter is answered exactly as long as it leaves few
    enough memories; a filter that leaves most of a large workspace is not selective, and the index serves it.
    """
    use_index = question.indexed and question.eligible >= INDEXED_FROM
    shape = _Shape(
        model=question.model if question.vector else None,
        vector_workspace=question.workspace_id if use_index else None,
        lexical=question.match is not None,
        word_index=not question.clauses or question.eligible > SCANNED_LEXICALLY,
        clauses=question.clauses,
    )
    given = {"workspace_id": question.workspace_id, **question.values}
    given |= {"vector": question.vector} if shape.model else {}
    given |= {"weights": question.weights} if shape.lexical else {}
    given |= {"match": question.match} if shape.lexical and shape.word_index else {}
    rows = await connection.execute(_statement(shape), given)
    return [Candidate(**row._mapping) for row in rows]  # noqa: SLF001 - SQLAlchemy's documented name for it


@lru_cache(maxsize=256)
def _statement(shape: _Shape) -> TextClause:
    arms = [_vector_arm(shape)] * (shape.model is not None) + [_lexical_arm(shape)] * shape.lexical
    names = ["vector_arm"] * (shape.model is not None) + ["lexical_arm"] * shape.lexical
    chosen = " UNION ".join(f"SELECT memory_id FROM {name}" for name in names)  # noqa: S608 - constants
    similarity, joined = "CAST(NULL AS float8)", ""
    if shape.model is not None:
        similarity = f"1 - ({_distance(shape.model)})"
        joined = f"LEFT JOIN {shape.model.partition} e USING (workspace_id, memory_id)"
    bm25 = "-(l.weights <#> CAST(:weights AS sparsevec))" if shape.lexical else "CAST(0 AS float8)"
    return text(f"""
    WITH {", ".join(arms)}, chosen AS MATERIALIZED ({chosen}), neighbour AS (
        SELECT m.memory_id FROM chosen
        JOIN memories c ON c.workspace_id = :workspace_id AND c.memory_id = chosen.memory_id
        JOIN memories m ON m.workspace_id = :workspace_id AND m.source_id = c.source_id
            AND m.ordinal BETWEEN c.ordinal - {NEIGHBOURHOOD} AND c.ordinal + {NEIGHBOURHOOD}
            AND m.valid_until IS NULL
        LEFT JOIN sources s ON s.workspace_id = m.workspace_id AND s.source_id = m.source_id
        WHERE {_all(shape.clauses)}
    )
    SELECT m.memory_id, m.source_id, m.ordinal, m.final_score, m.quality,
        coalesce(m.occurred_at, m.created_at) AS happened_at, {similarity} AS similarity, {bm25} AS bm25
    FROM (SELECT memory_id FROM chosen UNION SELECT memory_id FROM neighbour) AS pool
    JOIN memories m ON m.workspace_id = :workspace_id AND m.memory_id = pool.memory_id
    JOIN lexical l USING (workspace_id, memory_id) {joined}
    """)  # noqa: S608 - built of constants and numbers; every value is a parameter


def _vector_arm(shape: _Shape) -> str:
    assert shape.model is not None, "the caller asks for it only with a model"  # noqa: S101
    distance = _distance(shape.model)
    workspace = ":workspace_id" if shape.vector_workspace is None else f"{shape.vector_workspace:d}"
    order = distance if shape.vector_workspace is not None else f"({distance}) + 0, e.memory_id"
    source = f"{shape.model.partition} e"
    if shape.clauses:
        source = f"{JOINED} JOIN {source} USING (workspace_id, memory_id)"
    return f"""vector_arm AS MATERIALIZED (
        SELECT e.memory_id FROM {source} WHERE e.workspace_id = {workspace} AND {_all(shape.clauses)}
        ORDER BY {order} LIMIT {ARM_LIMIT}
    )"""  # noqa: S608 - constants and numbers


def _lexical_arm(shape: _Shape) -> str:
    source = "lexical l"
    if shape.clauses:
        source = f"{JOINED} JOIN {source} USING (workspace_id, memory_id)"
    matching = "l.terms @@ CAST(:match AS tsquery)" if shape.word_index else "true"
    return f"""lexical_arm AS MATERIALIZED (
        SELECT memory_id FROM (
            SELECT l.memory_id, l.weights <#> CAST(:weights AS sparsevec) AS score FROM {source}
            WHERE l.workspace_id = :workspace_id AND {matching} AND {_all(shape.clauses)}
        ) AS scored WHERE score < 0 ORDER BY score, memory_id LIMIT {ARM_LIMIT}
    )"""  # noqa: S608 - constants and numbers


def _distance(model: StoredModel) -> str:
    return f"CAST(e.embedding AS halfvec({model.dimension:d})) <=> CAST(:vector AS halfvec({model.dimension:d}))"


def _all(clauses: Sequence[str]) -> str:
    return " AND ".join(clauses) or "true"
