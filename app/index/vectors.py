"""The SQL of vectors: one partition a model, and the list of memories that still wait for theirs."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import msgspec
import numpy as np
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.errors import ConfigurationError
from app.index.pending import VECTORS, wait_for_links
from app.models.protocols import Matrix, Vector

INDEXED_FROM = 20_000
"""Memories of one workspace from which on it gets an HNSW index: an exact scan of as many takes 5 ms."""
LOCK_MODELS = "SELECT pg_advisory_xact_lock(hashtext('priors.embedding_models'))"
LOCK_TIMEOUT = "500ms"
"""What waits for a table queues everybody else behind it, so it gives up soon and is tried again."""
ACTIVE, CANDIDATE, RETIRING = "active", "candidate", "retiring"
"""A model is served, moved to, or no longer served and about to be dropped."""
MODELS = "SELECT model_id, name, dimension, active, retiring_since FROM embedding_models ORDER BY model_id"
TRY_MOVE = text("SELECT pg_try_advisory_lock(hashtext('priors.reembed'), 0)")
END_MOVE = text("SELECT pg_advisory_unlock(hashtext('priors.reembed'), 0)")
TRY_BUILD = text("SELECT pg_try_advisory_lock(hashtext('priors.index_vectors'), hashtext(:name))")
END_BUILD = text("SELECT pg_advisory_unlock(hashtext('priors.index_vectors'), hashtext(:name))")
MOVING = text("""
SELECT EXISTS (
    SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND objid = 0
    AND classid = CAST(hashtext('priors.reembed') AS oid)
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
)
""")
RETIRE_CANDIDATES = text("""
UPDATE embedding_models SET retiring_since = CASE WHEN name <> :name THEN now() END
WHERE NOT active AND (retiring_since IS NULL) = (name <> :name)
""")
SWITCH = text("""
UPDATE embedding_models SET active = (model_id = :model_id),
    retiring_since = CASE WHEN model_id <> :model_id THEN coalesce(retiring_since, now()) END
""")
UNCHANGED = text("""
SELECT m.memory_id
FROM unnest(CAST(:ids AS uuid[]), CAST(:hashes AS bytea[])) AS given(memory_id, content_hash)
JOIN memories m ON m.workspace_id = :workspace_id AND m.memory_id = given.memory_id
    AND m.content_hash = given.content_hash
ORDER BY m.memory_id FOR NO KEY UPDATE OF m
""")
NO_LONGER_LIVE = text("""
DELETE FROM pending_embeddings p WHERE workspace_id = :workspace_id AND memory_id = ANY(CAST(:ids AS uuid[]))
    AND NOT EXISTS (
        SELECT 1 FROM lexical l WHERE l.workspace_id = p.workspace_id AND l.memory_id = p.memory_id
    )
""")
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
    content_hash: bytes
    """Of the text, which may have become another when its vector comes."""


async def active_model(connection: AsyncConnection, *, held: bool = False) -> StoredModel | None:
    """The model whose vectors are served; None where no vector was ever stored.

    One that is `held` is not dropped before the transaction ends.
    """
    statement = text(f"SELECT model_id, name, dimension FROM embedding_models WHERE active{' FOR KEY SHARE' * held}")  # noqa: S608 - constants
    row = (await connection.execute(statement)).one_or_none()
    return None if row is None else StoredModel(model_id=row.model_id, name=row.name, dimension=row.dimension)


async def is_served(connection: AsyncConnection, model: StoredModel) -> bool:
    """Whether vectors of this model still belong in the store; it is then not dropped before the transaction ends.

    It costs a writer nothing: each vector's foreign key locks the same row.
    """
    statement = text("SELECT 1 FROM embedding_models WHERE model_id = :model_id AND active FOR KEY SHARE")
    return (await connection.execute(statement, {"model_id": model.model_id})).one_or_none() is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownModel:
    """A model that the database has vectors of, or is about to."""

    stored: StoredModel
    state: str
    """ACTIVE, CANDIDATE or RETIRING."""

    @property
    def name(self) -> str:
        """The name under which its vectors are stored."""
        return self.stored.name


async def models(connection: AsyncConnection, *, held: bool = False) -> list[KnownModel]:
    """Every model; where they are `held` none of them is dropped before the transaction ends."""
    rows = await connection.execute(text(MODELS + " FOR KEY SHARE" if held else MODELS))
    return [
        KnownModel(
            stored=StoredModel(model_id=row.model_id, name=row.name, dimension=row.dimension),
            state=ACTIVE if row.active else CANDIDATE if row.retiring_since is None else RETIRING,
        )
        for row in rows
    ]


async def register_candidate(connection: AsyncConnection, name: str, dimension: int) -> StoredModel:
    """The model of that name, its partition made now if need be; it does not serve yet unless it did.

    There is one candidate at a time: another one's half-filled vectors are given up.

    Raises:
        ConfigurationError: it is known with another dimension.
    """
    await connection.execute(text(LOCK_MODELS))
    await connection.execute(RETIRE_CANDIDATES, {"name": name})
    found = (
        await connection.execute(
            text("SELECT model_id, dimension FROM embedding_models WHERE name = :name"), {"name": name}
        )
    ).one_or_none()
    if found is None:
        return await _add(connection, name, dimension, active=False)
    if found.dimension != dimension:
        raise ConfigurationError(f"{name} is stored with {found.dimension} numbers a vector, not {dimension}")
    return StoredModel(model_id=found.model_id, name=name, dimension=dimension)


async def wait_briefly(connection: AsyncConnection) -> None:
    """Let this transaction wait LOCK_TIMEOUT at most for what others hold."""
    await connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'"))


async def switch(connection: AsyncConnection, candidate: StoredModel) -> None:
    """Serve this model from now on; the others retire. What lacks a vector of it gets on the waiting list."""
    await connection.execute(text(LOCK_MODELS))
    await connection.execute(SWITCH, {"model_id": candidate.model_id})
    await connection.execute(text("DELETE FROM pending_embeddings"))
    await list_waiting(connection, candidate)


async def retired(connection: AsyncConnection, *, for_seconds: float) -> list[StoredModel]:
    """Models that have not been served, nor moved to, for so long."""
    statement = text(
        "SELECT model_id, name, dimension FROM embedding_models"
        " WHERE retiring_since <= now() - make_interval(secs => :seconds) ORDER BY model_id"
    )
    rows = await connection.execute(statement, {"seconds": for_seconds})
    return [StoredModel(model_id=row.model_id, name=row.name, dimension=row.dimension) for row in rows]


async def drop_model(connection: AsyncConnection, model: StoredModel) -> None:
    """Drop a retiring model's vectors, once nobody writes them; waits LOCK_TIMEOUT at most, as others wait for it.

    The model's row is locked first, so that a writer who has just made sure of the model is not cut short.
    """
    await wait_briefly(connection)
    locked = text("SELECT 1 FROM embedding_models WHERE model_id = :model_id AND retiring_since IS NOT NULL FOR UPDATE")
    if (await connection.execute(locked, {"model_id": model.model_id})).one_or_none() is None:
        return
    await connection.execute(text(f"DROP TABLE IF EXISTS {model.partition}"))
    await connection.execute(
        text("DELETE FROM embedding_models WHERE model_id = :model_id"), {"model_id": model.model_id}
    )


async def lacking(
    connection: AsyncConnection, model: StoredModel, *, limit: int, before: tuple[int, UUID] | None
) -> list[WaitingText]:
    """Live memories without a vector of this model, newest first in each workspace, after `before`."""
    after = "" if before is None else "AND (l.workspace_id, l.memory_id) < (:workspace_id, :memory_id)"
    statement = text(f"""
        SELECT l.workspace_id, l.memory_id, m.title, m.body, m.content_hash
        FROM lexical l JOIN memories m USING (workspace_id, memory_id)
        WHERE NOT EXISTS (
            SELECT 1 FROM {model.partition} e WHERE e.workspace_id = l.workspace_id AND e.memory_id = l.memory_id
        ) {after}
        ORDER BY l.workspace_id DESC, l.memory_id DESC LIMIT :limit
        """)  # noqa: S608 - the partition's name is made of a number
    given = {} if before is None else {"workspace_id": before[0], "memory_id": before[1]}
    rows = await connection.execute(statement, {**given, "limit": limit})
    return [
        WaitingText(
            workspace_id=row.workspace_id,
            memory_id=row.memory_id,
            title=row.title,
            body=row.body,
            content_hash=bytes(row.content_hash),
        )
        for row in rows
    ]


async def progress(connection: AsyncConnection, model: StoredModel) -> tuple[int, int]:
    """How many memories have a vector of this model, and how many there are."""
    statement = f"SELECT (SELECT count(*) FROM {model.partition}), (SELECT count(*) FROM lexical)"  # noqa: S608 - made of a number
    done, total = (await connection.execute(text(statement))).one()
    return done, total


async def register_model(connection: AsyncConnection, name: str, dimension: int) -> StoredModel:
    """Make `name` the active model if there is none yet; the active one, whichever it is.

    What was stored before gets on the waiting list.
    """
    found = await active_model(connection)
    if found is None:
        await connection.execute(text(LOCK_MODELS))
        found = await active_model(connection)
    if found is not None:
        return found
    model = await _add(connection, name, dimension, active=True)
    await list_waiting(connection, model)
    return model


async def _add(connection: AsyncConnection, name: str, dimension: int, *, active: bool) -> StoredModel:
    statement = text(
        "INSERT INTO embedding_models (name, dimension, active) VALUES (:name, :dimension, :active) RETURNING model_id"
    )
    given = {"name": name, "dimension": dimension, "active": active}
    model_id = (await connection.execute(statement, given)).scalar_one()
    model = StoredModel(model_id=model_id, name=name, dimension=dimension)
    await connection.execute(
        text(f"CREATE TABLE {model.partition} PARTITION OF embeddings FOR VALUES IN ({model_id:d})")
    )
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
        SELECT workspace_id, memory_id, m.title, m.body, m.content_hash
        FROM pending_embeddings p JOIN memories m USING (workspace_id, memory_id)
        WHERE {" AND ".join(clauses)} ORDER BY memory_id DESC LIMIT :limit
        """)  # noqa: S608 - the clauses are constants
    given = {"workspace_id": workspace_id, "ids": None if ids is None else list(ids), "limit": limit}
    used = {name: value for name, value in given.items() if value is not None}
    return [
        WaitingText(
            workspace_id=row.workspace_id,
            memory_id=row.memory_id,
            title=row.title,
            body=row.body,
            content_hash=bytes(row.content_hash),
        )
        for row in await connection.execute(statement, used)
    ]


async def listed_count(connection: AsyncConnection, model: StoredModel) -> int:
    """How many live memories without a vector of this model are on the waiting list."""
    statement = f"""
        SELECT count(*) FROM pending_embeddings p JOIN lexical l USING (workspace_id, memory_id) WHERE NOT EXISTS (
            SELECT 1 FROM {model.partition} e WHERE e.workspace_id = p.workspace_id AND e.memory_id = p.memory_id
        )
        """  # noqa: S608 - the partition's name is made of a number
    return int((await connection.execute(text(statement))).scalar_one())


async def waiting_count(connection: AsyncConnection) -> int:
    """How many memories wait for a vector, in all workspaces."""
    return int((await connection.execute(text("SELECT count(*) FROM pending_embeddings"))).scalar_one())


async def write(
    connection: AsyncConnection,
    model: StoredModel,
    workspace_id: int,
    ids: Sequence[UUID],
    literals: Sequence[str],
    *,
    hashes: Sequence[bytes] | None = None,
) -> bool:
    """`insert`, take those memories off the waiting list, and ask a worker to link them by their vectors.

    With `hashes`, of the texts that were embedded, a memory whose text has become another is left on the list.
    False, and nothing is done, where the store has moved to another model: the memories then wait for its vectors.
    """
    if not await is_served(connection, model):
        return False
    if hashes is not None:
        all_ids = list(ids)
        given = {"workspace_id": workspace_id, "ids": all_ids, "hashes": list(hashes)}
        same = set((await connection.execute(UNCHANGED, given)).scalars())
        pairs = [(memory_id, vector) for memory_id, vector in zip(ids, literals, strict=True) if memory_id in same]
        ids, literals = [memory_id for memory_id, _ in pairs], [vector for _, vector in pairs]
        changed = [memory_id for memory_id in all_ids if memory_id not in same]
        await connection.execute(NO_LONGER_LIVE, {"workspace_id": workspace_id, "ids": changed})
    await insert(connection, model, workspace_id, ids, literals)
    await connection.execute(
        text(
            "DELETE FROM pending_embeddings WHERE workspace_id = :workspace_id"
            " AND memory_id = ANY(CAST(:ids AS uuid[]))"
        ),
        {"workspace_id": workspace_id, "ids": list(ids)},
    )
    await wait_for_links(connection, workspace_id, ids, step=VECTORS)
    return True


async def lacking_among(connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID]) -> set[UUID]:
    """Those of these memories that wait for a vector."""
    waiting = text(
        "SELECT memory_id FROM pending_embeddings"
        " WHERE workspace_id = :workspace_id AND memory_id = ANY(CAST(:ids AS uuid[]))"
    )
    return set((await connection.execute(waiting, {"workspace_id": workspace_id, "ids": list(ids)})).scalars())


async def insert(
    connection: AsyncConnection, model: StoredModel, workspace_id: int, ids: Sequence[UUID], literals: Sequence[str]
) -> None:
    """Store vectors, the literal i for memory i. A memory that was retired meanwhile gets none."""
    given = {"workspace_id": workspace_id, "ids": list(ids), "vectors": list(literals)}
    await connection.execute(
        text(f"""
        INSERT INTO {model.partition} (workspace_id, memory_id, model_id, embedding)
        SELECT l.workspace_id, l.memory_id, {model.model_id:d}, CAST(given.vector AS halfvec({model.dimension:d}))
        FROM unnest(CAST(:ids AS uuid[]), CAST(:vectors AS text[])) AS given(memory_id, vector)
        JOIN lexical l ON l.workspace_id = :workspace_id AND l.memory_id = given.memory_id
        FOR KEY SHARE OF l
        ON CONFLICT DO NOTHING
        """),  # noqa: S608 - numbers only
        given,
    )


async def nearest_of(
    connection: AsyncConnection, model: StoredModel, workspace_id: int, ids: Sequence[UUID], literals: Sequence[str]
) -> list[tuple[UUID | None, float]]:
    """For each vector the nearest of these memories and its cosine similarity, exactly; None where none has one."""
    distance = f"e.embedding::halfvec({model.dimension:d}) <=> CAST(given.vector AS halfvec({model.dimension:d}))"
    statement = text(f"""
        SELECT nearest.memory_id, coalesce(1 - nearest.distance, 0)
        FROM unnest(CAST(:vectors AS text[])) WITH ORDINALITY AS given(vector, place)
        LEFT JOIN LATERAL (
            SELECT e.memory_id, {distance} AS distance FROM {model.partition} e
            WHERE e.workspace_id = :workspace_id AND e.memory_id = ANY(CAST(:ids AS uuid[]))
            ORDER BY ({distance}) + 0, e.memory_id LIMIT 1
        ) AS nearest ON true
        ORDER BY given.place
        """)  # noqa: S608 - numbers only
    given = {"workspace_id": workspace_id, "ids": list(ids), "vectors": list(literals)}
    return [(row[0], row[1]) for row in await connection.execute(statement, given)]


def as_literals(vectors: Matrix) -> list[str]:
    """Each row as pgvector reads it, rounded to the precision that halfvec keeps."""
    return [msgspec.json.encode(row).decode() for row in vectors.astype(np.float16).astype(np.float32).tolist()]


def as_literal(vector: Vector) -> str:
    """A query's vector as pgvector reads it."""
    return msgspec.json.encode(vector.tolist()).decode()


async def vector_bytes(connection: AsyncConnection) -> int:
    """What the vectors of the served model take, in all workspaces: asked in no time, unlike their number."""
    model = await active_model(connection)
    if model is None:
        return 0
    size = text("SELECT pg_table_size(CAST(:partition AS regclass))")
    return int((await connection.execute(size, {"partition": model.partition})).scalar_one())


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


async def build_index(connection: AsyncConnection, model: StoredModel, workspace_id: int) -> bool:
    """Build a workspace's HNSW index beside its readers and writers. Needs a connection in autocommit mode.

    False, and nothing is done, where somebody else builds it at this moment or just has.
    """
    name = model.index_name(workspace_id)
    if not (await connection.execute(TRY_BUILD, {"name": name})).scalar_one():
        return False
    try:
        return await _build_index(connection, model, workspace_id, name)
    finally:
        await connection.execute(END_BUILD, {"name": name})


async def _build_index(connection: AsyncConnection, model: StoredModel, workspace_id: int, name: str) -> bool:
    if workspace_id in await indexed_workspaces(connection, model):
        return False
    await connection.execute(text(f"DROP INDEX CONCURRENTLY IF EXISTS {name}"))
    await connection.execute(
        text(
            f"CREATE INDEX CONCURRENTLY {name} ON {model.partition} USING {HNSW.format(dimension=model.dimension)}"
            f" WHERE workspace_id = {workspace_id:d}"
        )
    )
    return True


def embedded_text(title: str, body: str) -> str:
    """Title above body: what the vector arm compares."""
    return f"{title}\n{body}" if title else body
