"""The SQL of vectors, one partition a model, and of the HNSW indexes of large workspaces."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple, TypeAlias
from uuid import UUID

import msgspec
import numpy as np
import psycopg
import structlog

from app.errors import StorageFull
from app.foundation.db.session import INDEX, Session
from app.foundation.db.wire import HALFVEC_TYPE, ids_of, vectors_of
from app.foundation.models.late import BYTES, Codes, TokenCodes
from app.foundation.models.protocols import Matrix, Vector
from app.storage.index.indexing import (
    LACKING,
    VECTORS,
    PendingText,
    leave_queue,
    leave_queue_unless_live,
    queue_for_links,
)
from app.storage.index.models import StoredModel, active_model, is_served, lock

INDEXED_FROM = 20_000
"""A workspace with at least so many vectors gets an HNSW index: an exact scan of this many takes 5 ms."""
_HNSW = "hnsw ((embedding::halfvec({dimension})) halfvec_cosine_ops) WITH (m = 16, ef_construction = 64)"
_BUILD = "priors.index_vectors"
"""The lock of building an index."""
_INDEXES = """
SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = %(partition)s::regclass AND i.indisvalid AND c.relname LIKE %(pattern)s
"""
# A quarter of the machine, by its own setting: Postgres is told to expect half of its memory to hold the database.
_MAKE_ROOM = """
SELECT set_config('maintenance_work_mem', greatest(
    pg_size_bytes(current_setting('maintenance_work_mem')),
    least(
        {bytes} * (SELECT count(*) FROM {partition} WHERE workspace_id = %(workspace)s),
        pg_size_bytes(current_setting('effective_cache_size')) / 2
    )
) / 1024 || 'kB', false)
"""
LINK_BYTES, _NUMBER_BYTES = 720, 2
"""Memory that the build of an index takes for the links of a vector, and for each of its numbers: 11,315 vectors of 384
numbers fill 16 MB. What finds no room is added one by one, which takes three times as long
(docs/how-to/deployment.md)."""
_GROWN = 2
"""A workspace has at most so many times the documents of its last statistics: a write that leaves it with more has
them counted anew (STALE_AT_WRITES)."""
# A workspace without statistics, or with those of another store, may have any number of documents.
_UNINDEXED = f"""
SELECT workspace_id, CASE WHEN statistics_at > '-infinity' THEN document_count * {_GROWN} ELSE %(least)s::bigint END
FROM workspaces WHERE workspace_id <> ALL(%(indexed)s::bigint[])
"""  # noqa: S608 - a constant
_FURTHER_PASSAGES = """
SELECT workspace_id, count(*) FROM {partition} WHERE passage > 0 AND workspace_id = ANY(%(ids)s::bigint[])
GROUP BY workspace_id
"""
REACHES = "SELECT EXISTS (SELECT FROM {partition} WHERE workspace_id = %(workspace)s OFFSET %(before)s)"
_HAS_PASSAGES = "SELECT EXISTS (SELECT 1 FROM {partition} WHERE workspace_id = %(workspace_id)s AND passage > 0)"
_BYTES = "SELECT pg_table_size(%(partition)s::regclass)"
_BYTES_ON_NODES = "SELECT citus_table_size(%(partition)s::regclass)"
"""The same where tables are distributed: the coordinator's own table is empty."""
_UNCHANGED = """
SELECT m.memory_id FROM unnest(%(ids)s::uuid[], %(hashes)s::bytea[]) AS given(memory_id, content_hash)
JOIN memories m ON m.workspace_id = %(workspace_id)s AND m.memory_id = given.memory_id
    AND m.content_hash = given.content_hash
ORDER BY m.memory_id FOR NO KEY UPDATE OF m
"""

logger = structlog.get_logger()


class PassageVector(NamedTuple):
    """The vector of a memory's text, or of a part of a long one."""

    literal: str
    """The vector in pgvector's text form."""
    starts: int = 0
    """The character of the body at which the part begins."""
    ends: int | None = None
    """The character of the body before which it ends; None if the model read what its window holds."""
    parts: bytes | None = None
    """The vectors of the passages that answers show (`packed_parts`); None if the text is a single one."""
    tokens: bytes | None = None
    """The codes of the words of these passages (`packed_tokens`); None where the model gives none."""


Passages: TypeAlias = Sequence[PassageVector]
"""The vectors of a memory, in the order of its text; the place of each is its number."""


async def insert(session: Session, model: StoredModel, found: Mapping[UUID, Passages]) -> list[UUID]:
    """Stores the vectors of memories that lack them, and returns these; one that was retired meanwhile gets none.

    A first vector that was stored without its end, its parts or its tokens stays as it is, and gains them.
    """
    rows = [(memory_id, place, *part) for memory_id, parts in found.items() for place, part in enumerate(parts)]
    if not rows:
        return []
    columns = ("ids", "passages", "vectors", "starts", "ends", "parts", "tokens")
    written = await session.tuples(
        f"""
        INSERT INTO {model.partition} (workspace_id, memory_id, model_id, passage, starts, ends, embedding, parts,
            tokens)
        SELECT l.workspace_id, l.memory_id, {model.model_id:d}, given.passage, given.starts, given.ends,
            given.vector::halfvec({model.dimension:d}), given.parts, given.tokens
        FROM unnest(%(ids)s::uuid[], %(passages)s::smallint[], %(starts)s::integer[], %(ends)s::integer[],
            %(vectors)s::text[], %(parts)s::bytea[], %(tokens)s::bytea[])
            AS given(memory_id, passage, starts, ends, vector, parts, tokens)
        JOIN lexical l ON l.workspace_id = %(workspace_id)s AND l.memory_id = given.memory_id
        FOR KEY SHARE OF l
        ON CONFLICT (workspace_id, memory_id, model_id, passage) DO UPDATE
        SET ends = coalesce({model.partition}.ends, EXCLUDED.ends),
            parts = coalesce(EXCLUDED.parts, {model.partition}.parts),
            tokens = coalesce(EXCLUDED.tokens, {model.partition}.tokens)
        WHERE ({model.partition}.ends IS NULL AND EXCLUDED.ends IS NOT NULL)
            OR ({model.partition}.parts IS NULL AND EXCLUDED.parts IS NOT NULL)
            OR ({model.partition}.tokens IS NULL AND EXCLUDED.tokens IS NOT NULL)
        RETURNING memory_id, passage = 0 AND xmax = 0
        """,  # noqa: S608 - numbers only
        dict(zip(columns, zip(*rows, strict=True), strict=True)),
    )
    return [memory_id for memory_id, is_new in written if is_new]


async def insert_new(session: Session, model: StoredModel, ids: Sequence[UUID], rows: Matrix) -> None:
    """Stores the vectors of memories that this transaction has made, and queues them for links; row i is of memory i.

    No other transaction knows these memories yet, so none of them can be retired or have a vector. 500 vectors take 12
    ms, and 80 ms by `insert`, which checks the memories and reads the vectors from text.
    """
    await session.execute(
        f"""
        INSERT INTO {model.partition} (workspace_id, memory_id, model_id, passage, starts, embedding)
        SELECT %(workspace_id)s, given.memory_id, {model.model_id:d}, 0, 0, given.vector
        FROM unnest(%(ids)s::uuid[], %(vectors)s::halfvec[]) AS given(memory_id, vector)
        RETURNING 1
        """,  # noqa: S608 - numbers only
        {"ids": ids_of(ids), "vectors": vectors_of(rows, await session.value(HALFVEC_TYPE))},
    )
    await queue_for_links(session, ids, step=VECTORS)
    await session.enqueue(INDEX)


async def write(
    session: Session, model: StoredModel, found: Mapping[UUID, Passages], *, hashes: Mapping[UUID, bytes] | None = None
) -> bool:
    """Stores vectors as `insert` does, removes their memories from the queue, and queues them for links.

    `hashes` are of the texts that were embedded; with them, a memory whose text has changed since stays in the queue.
    A memory without passages only leaves the queue. Returns False, and does nothing, if the store has moved to another
    model: the memories stay pending for its vectors.
    """
    if not await is_served(session, model):
        return False
    if hashes is not None:
        same = set(await session.column(_UNCHANGED, {"ids": hashes, "hashes": hashes.values()}))
        await leave_queue_unless_live(session, [memory_id for memory_id in found if memory_id not in same])
        found = {memory_id: parts for memory_id, parts in found.items() if memory_id in same}
    new = await insert(session, model, found)
    await leave_queue(session, list(found))
    await queue_for_links(session, new, step=VECTORS)
    return True


def by_workspace(batch: Sequence[PendingText], found: Sequence[Passages]) -> Mapping[int, Mapping[UUID, Passages]]:
    """Returns the vectors of a batch by workspace and memory."""
    grouped: dict[int, dict[UUID, Passages]] = defaultdict(dict)
    for item, parts in zip(batch, found, strict=True):
        grouped[item.workspace_id][item.memory_id] = parts
    return grouped


async def has_passages(session: Session, model: StoredModel) -> bool:
    """Tells whether a memory of the workspace has several vectors of this model."""
    return bool(await session.value(_HAS_PASSAGES.format(partition=model.partition)))


async def lacking_of_all(
    session: Session, model: StoredModel, *, limit: int, before: tuple[int, UUID] | None
) -> list[PendingText]:
    """Returns live memories of all workspaces without a vector of this model, from the place `before` on.

    Each workspace's newest come first.
    """
    after = "" if before is None else "AND (workspace_id, memory_id) < (%(workspace_id)s, %(memory_id)s)"
    lacking = LACKING.format(joined="JOIN memories m USING (workspace_id, memory_id)", partition=model.partition)
    statement = (
        f"SELECT workspace_id, memory_id, m.title, m.body, m.content_hash FROM {lacking} {after}"  # noqa: S608 - numbers
        " ORDER BY workspace_id DESC, memory_id DESC LIMIT %(limit)s"
    )
    place = {} if before is None else {"workspace_id": before[0], "memory_id": before[1]}
    return [PendingText(*row) for row in await session.tuples(statement, {**place, "limit": limit})]


async def nearest_of(
    session: Session, model: StoredModel, ids: Sequence[UUID], literals: Sequence[str]
) -> list[tuple[UUID | None, float]]:
    """Returns each vector's nearest memory among these, with its cosine similarity; None if none of them has a vector.

    The search is exact.
    """
    distance = f"e.embedding::halfvec({model.dimension:d}) <=> given.vector::halfvec({model.dimension:d})"
    statement = f"""
        SELECT nearest.memory_id, coalesce(1 - nearest.distance, 0)
        FROM unnest(%(vectors)s::text[]) WITH ORDINALITY AS given(vector, place)
        LEFT JOIN LATERAL (
            SELECT e.memory_id, {distance} AS distance FROM {model.partition} e
            WHERE e.workspace_id = %(workspace_id)s AND e.memory_id = ANY(%(ids)s::uuid[])
            ORDER BY ({distance}) + 0, e.memory_id LIMIT 1
        ) AS nearest ON true
        ORDER BY given.place
        """  # noqa: S608 - numbers only
    rows = await session.tuples(statement, {"ids": ids, "vectors": literals})
    return [(memory_id, similarity) for memory_id, similarity in rows]


async def vector_bytes(session: Session) -> int:
    """Returns the size of the served model's vectors in all workspaces, which needs no counting."""
    model = await active_model(session)
    size = _BYTES_ON_NODES if session.distributed else _BYTES
    return 0 if model is None else int(await session.value(size, {"partition": model.partition}))


@contextmanager
def unless_dropped() -> Iterator[None]:
    """Ends work on a model's indexes if its vectors have just been dropped, because the store has moved."""
    try:
        yield
    except psycopg.errors.UndefinedTable:
        logger.info("the store moved to another model while its indexes were built")


async def crowded_workspaces(session: Session, model: StoredModel) -> list[int]:
    """Returns the workspaces that are too large for the exact scan and have no vector index yet.

    Jobs ask every few seconds, and three million vectors take seconds to count. So it counts only workspaces that may
    be too large by their statistics, none further than it must, and none that has its index.
    """
    indexed = await indexed_workspaces(session, model)
    most = dict(await session.tuples(_UNINDEXED, {"indexed": sorted(indexed), "least": INDEXED_FROM}))
    # Each document has one vector, and a long one further vectors, which have an index of their own.
    further = _FURTHER_PASSAGES.format(partition=model.partition)
    for workspace_id, passages in await session.tuples(further, {"ids": sorted(most)}):
        most[workspace_id] += passages
    reaches = REACHES.format(partition=model.partition)
    return [
        workspace_id
        for workspace_id in sorted(most)
        if most[workspace_id] >= INDEXED_FROM
        and await session.value(reaches, {"workspace": workspace_id, "before": INDEXED_FROM - 1})
    ]


async def indexed_workspaces(session: Session, model: StoredModel) -> frozenset[int]:
    """Returns the workspaces whose vectors have a valid HNSW index."""
    given = {"partition": model.partition, "pattern": f"{model.partition}\\_%\\_hnsw"}
    return frozenset(int(name.split("_")[2]) for name in await session.column(_INDEXES, given))


async def build_indexes(session: Session, model: StoredModel) -> int:
    """Builds the index of each crowded workspace without blocking its readers and writers. Returns their number.

    The session sees all workspaces and has no transaction.
    """
    crowded = await crowded_workspaces(session, model)
    return sum([await _build_index(session, model, workspace_id) for workspace_id in crowded])


async def _build_index(session: Session, model: StoredModel, workspace_id: int) -> bool:
    """Builds an HNSW index, unless another process builds it now or has just built it; returns whether it did."""
    name = model.index_name(workspace_id)
    async with lock(session, _BUILD, of=name) as mine:
        if not mine or workspace_id in await indexed_workspaces(session, model):
            return False
        try:
            await session.execute(_room(model), {"workspace": workspace_id})
            await _create_index(session, model, workspace_id)
        except (StorageFull, psycopg.errors.OutOfMemory):
            logger.warning("the server has no room to build an index in memory", index=name)
            await session.execute("RESET maintenance_work_mem")
            await _create_index(session, model, workspace_id)
        finally:
            # Postgres forgets the setting of a lost connection.
            with suppress(psycopg.Error):
                await session.execute("RESET maintenance_work_mem")
    return True


def _room(model: StoredModel) -> str:
    """Returns the statement that lets the build of a workspace's index keep all its vectors in memory."""
    return _MAKE_ROOM.format(partition=model.partition, bytes=LINK_BYTES + _NUMBER_BYTES * model.dimension)


async def _create_index(session: Session, model: StoredModel, workspace_id: int) -> None:
    name = model.index_name(workspace_id)
    await session.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
    await session.execute(
        f"CREATE INDEX CONCURRENTLY {name} ON {model.partition} USING {_HNSW.format(dimension=model.dimension)}"
        f" WHERE workspace_id = {workspace_id:d}"
    )


def packed_parts(starts: Sequence[int], vectors: Matrix) -> bytes:
    """Returns the vectors of a memory's passages in half precision, after the first character of each.

    They stand beside the memory's vector, and no arm searches them: an answer reads those of the best memories only.
    The passages of the best 24 chunks answer as well as those of all (docs/adr/0046).
    """
    return np.array(starts, "<i4").tobytes() + vectors.astype("<f2").tobytes()


def unpacked_parts(data: bytes, starts: Sequence[int], dimension: int) -> Matrix | None:
    """Returns the vectors that `packed_parts` stored for passages that begin there; None if it stored others."""
    count = len(starts)
    if len(data) != count * (4 + 2 * dimension) or data[: 4 * count] != np.array(starts, "<i4").tobytes():
        return None
    return np.frombuffer(data, "<f2", offset=4 * count).reshape(count, dimension).astype(np.float32)


def packed_tokens(title_ends: int, passages: Sequence[TokenCodes]) -> bytes:
    """Returns the codes of the words of a memory's title, once, and of each of its passages, with the number of each.

    The text of each passage begins with the title, of `title_ends` characters.
    """
    titles = [int(np.searchsorted(item.ends, title_ends, side="right")) for item in passages]
    codes = [passages[0].codes[: titles[0]]]
    codes += [item.codes[title:] for item, title in zip(passages, titles, strict=True)]
    return np.array([len(part) for part in codes], "<u2").tobytes() + np.concatenate(codes).tobytes()


def unpacked_tokens(data: bytes, passages: int) -> list[Codes] | None:
    """Returns the codes that `packed_tokens` stored: of the title, and of each of so many passages; None if it stored
    those of another number of passages. Whether they begin where they did is seen by `unpacked_parts`."""
    head = 2 * (passages + 1)
    numbers = np.frombuffer(data[:head], "<u2")
    if len(numbers) <= passages or len(data) != head + BYTES * int(numbers.sum()):
        return None
    return np.split(np.frombuffer(data, np.uint8, offset=head).reshape(-1, BYTES), np.cumsum(numbers)[:-1])


def unpacked_vector(data: bytes) -> Matrix:
    """Returns a vector, as pgvector sends it (its dimension, two unused bytes, its numbers), as a matrix of one row."""
    return np.frombuffer(data, ">f2", offset=4).reshape(1, -1).astype(np.float32)


def as_literals(vectors: Matrix) -> list[str]:
    """Returns each row in pgvector's text form, rounded to the precision of halfvec."""
    return [msgspec.json.encode(row).decode() for row in vectors.astype(np.float16).astype(np.float32).tolist()]


def as_literal(vector: Vector) -> str:
    """Returns a query's vector in pgvector's text form."""
    return msgspec.json.encode(vector.tolist()).decode()


def embedded_text(title: str, body: str) -> str:
    """Returns the text that the vector arm compares: the title above the body."""
    return f"{title}\n{body}" if title else body
