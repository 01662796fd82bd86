"""The SQL of vectors: one partition a model, and the list of memories that still wait for theirs."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import msgspec
import numpy as np
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.embeddings.provider import Matrix, Vector

INDEXED_FROM = 20_000
"""Memories of one workspace from which on it gets an HNSW index: an exact scan of as many takes 5 ms."""
HNSW = "hnsw ((embedding::halfvec({dimension})) halfvec_cosine_ops) WITH (m = 16, ef_construction = 64)"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredModel:
    """The model whose vectors the database serves."""

    model_id: int
    name: str
    dimension: int

    @property
    def partition(self) -> str:
        """The table that holds its vectors."""
        return f"embeddings_{self.model_id}"

    def index_name(self, workspace_id: int) -> str:
        """The HNSW index over one workspace's vectors of this model."""
        return f"embeddings_{self.model_id}_{workspace_id}_hnsw"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingText:
    """A memory that has no vector yet, and what is to be embedded."""

    workspace_id: int
    memory_id: UUID
    title: str
    body: str


async def active_model(connection: AsyncConnection) -> StoredModel | None:
    """The model whose vectors are served; None where no vector was ever stored."""
    statement = text("SELECT model_id, name, dimension FROM embedding_models WHERE active")
    row = (await connection.execute(statement)).one_or_none()
    return None if row is None else StoredModel(model_id=row.model_id, name=row.name, dimension=row.dimension)


async def register_model(connection: AsyncConnection, name: str, dimension: int) -> StoredModel:
    """Make `name` the active model if there is none yet; the active one, whichever it is.

    What was stored before gets on the waiting list.
    """
    await connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('priors.embedding_models'))"))
    found = await active_model(connection)
    if found is not None:
        return found
    insert = text(
        "INSERT INTO embedding_models (name, dimension, active) VALUES (:name, :dimension, true) RETURNING model_id"
    )
    model_id = (await connection.execute(insert, {"name": name, "dimension": dimension})).scalar_one()
    model = StoredModel(model_id=model_id, name=name, dimension=dimension)
    await connection.execute(
        text(f"CREATE TABLE {model.partition} PARTITION OF embeddings FOR VALUES IN ({model_id:d})")
    )
    await list_waiting(connection, model)
    return model


async def list_waiting(connection: AsyncConnection, model: StoredModel) -> None:
    """Put every live memory without a vector on the waiting list, after a restore or a change of model."""
    await connection.execute(
        text(f"""
        INSERT INTO pending_embeddings (workspace_id, memory_id)
        SELECT workspace_id, memory_id FROM lexical l WHERE NOT EXISTS (
            SELECT 1 FROM {model.partition} e WHERE e.workspace_id = l.workspace_id AND e.memory_id = l.memory_id
        ) ON CONFLICT DO NOTHING
        """)  # noqa: S608 - the partition's name is made of a number
    )


async def drop(connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID]) -> None:
    """Forget the vectors of memories whose text has changed."""
    await connection.execute(
        text("DELETE FROM embeddings WHERE workspace_id = :workspace_id AND memory_id = ANY(CAST(:ids AS uuid[]))"),
        {"workspace_id": workspace_id, "ids": list(ids)},
    )


async def wait_for_vectors(connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID]) -> None:
    """Put memories on the waiting list."""
    statement = text(
        "INSERT INTO pending_embeddings (workspace_id, memory_id)"
        " SELECT :workspace_id, unnest(CAST(:ids AS uuid[])) ON CONFLICT DO NOTHING"
    )
    await connection.execute(statement, {"workspace_id": workspace_id, "ids": list(ids)})


async def waiting(
    connection: AsyncConnection, *, limit: int, workspace_id: int | None = None, ids: Sequence[UUID] | None = None
) -> list[WaitingText]:
    """Memories that wait for a vector, newest first; of one workspace, or these ids, where given."""
    clauses = ["true"]
    if workspace_id is not None:
        clauses.append("p.workspace_id = :workspace_id")
    if ids is not None:
        clauses.append("p.memory_id = ANY(CAST(:ids AS uuid[]))")
    statement = text(f"""
        SELECT workspace_id, memory_id, m.title, m.body
        FROM pending_embeddings p JOIN memories m USING (workspace_id, memory_id)
        WHERE {" AND ".join(clauses)} ORDER BY memory_id DESC LIMIT :limit
        """)  # noqa: S608 - the clauses are constants
    given = {"workspace_id": workspace_id, "ids": None if ids is None else list(ids), "limit": limit}
    used = {name: value for name, value in given.items() if value is not None}
    return [
        WaitingText(workspace_id=row.workspace_id, memory_id=row.memory_id, title=row.title, body=row.body)
        for row in await connection.execute(statement, used)
    ]


async def waiting_count(connection: AsyncConnection) -> int:
    """How many memories wait for a vector, in all workspaces."""
    return int((await connection.execute(text("SELECT count(*) FROM pending_embeddings"))).scalar_one())


async def write(
    connection: AsyncConnection, model: StoredModel, workspace_id: int, ids: Sequence[UUID], literals: Sequence[str]
) -> None:
    """Store vectors, the literal i for memory i, and take those memories off the waiting list.

    A memory that was retired meanwhile gets none.
    """
    given = {"workspace_id": workspace_id, "ids": list(ids), "vectors": list(literals)}
    await connection.execute(
        text(f"""
        INSERT INTO {model.partition} (workspace_id, memory_id, model_id, embedding)
        SELECT l.workspace_id, l.memory_id, {model.model_id:d}, CAST(given.vector AS halfvec({model.dimension:d}))
        FROM unnest(CAST(:ids AS uuid[]), CAST(:vectors AS text[])) AS given(memory_id, vector)
        JOIN lexical l ON l.workspace_id = :workspace_id AND l.memory_id = given.memory_id
        ON CONFLICT DO NOTHING
        """),  # noqa: S608 - numbers only
        given,
    )
    await connection.execute(
        text(
            "DELETE FROM pending_embeddings WHERE workspace_id = :workspace_id"
            " AND memory_id = ANY(CAST(:ids AS uuid[]))"
        ),
        {"workspace_id": workspace_id, "ids": list(ids)},
    )


def as_literals(vectors: Matrix) -> list[str]:
    """Each row as pgvector reads it, rounded to the precision that halfvec keeps."""
    return [msgspec.json.encode(row).decode() for row in vectors.astype(np.float16).astype(np.float32).tolist()]


def as_literal(vector: Vector) -> str:
    """A query's vector as pgvector reads it."""
    return msgspec.json.encode(vector.tolist()).decode()


async def crowded_workspaces(connection: AsyncConnection, model: StoredModel) -> list[int]:
    """Workspaces that have grown beyond the exact scan and have no vector index yet."""
    statement = text(
        f"SELECT workspace_id FROM {model.partition} GROUP BY 1 HAVING count(*) >= {INDEXED_FROM}"  # noqa: S608 - numbers only
    )
    crowded = (await connection.execute(statement)).scalars()
    indexed = await indexed_workspaces(connection, model)
    return [workspace_id for workspace_id in crowded if workspace_id not in indexed]


async def indexed_workspaces(connection: AsyncConnection, model: StoredModel) -> frozenset[int]:
    """Workspaces whose vectors have a valid HNSW index."""
    statement = text(
        "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
        " WHERE i.indrelid = CAST(:partition AS regclass) AND i.indisvalid AND c.relname LIKE :pattern"
    )
    found = await connection.execute(
        statement, {"partition": model.partition, "pattern": f"{model.partition}\\_%\\_hnsw"}
    )
    return frozenset(int(name.split("_")[2]) for name in found.scalars())


async def build_index(connection: AsyncConnection, model: StoredModel, workspace_id: int) -> None:
    """Build a workspace's HNSW index beside its readers and writers. Needs a connection in autocommit mode."""
    name = model.index_name(workspace_id)
    await connection.execute(text(f"DROP INDEX CONCURRENTLY IF EXISTS {name}"))
    await connection.execute(
        text(
            f"CREATE INDEX CONCURRENTLY {name} ON {model.partition} USING {HNSW.format(dimension=model.dimension)}"
            f" WHERE workspace_id = {workspace_id:d}"
        )
    )
