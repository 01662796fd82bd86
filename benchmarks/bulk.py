"""Many memories by COPY into the tables of the service, because its own intake would take an hour for three million."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from uuid import UUID

import numpy as np
import psycopg
from numpy.typing import NDArray

from app.foundation.db.pool import libpq_url
from app.storage.index.indexing import INDEX_WORDS, K1, B
from app.storage.index.models import StoredModel
from benchmarks.corpus import CHUNKS_A_SOURCE, DIMENSION, PORTION, Corpus

FIRST_MOMENT = 1_760_000_000_000
"""Milliseconds since 1970 in the id of the first memory; each next one has a millisecond more."""
SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)
END = b"\xff\xff"
SOURCE_MARK = 1 << 40
"""Added to the number of a source, so that its id differs from each memory's."""
FIRST_LENGTH = """
SELECT avg(priors_length(priors_terms(CAST(language AS regconfig), concat_ws(E'\\n', title, body)))) FROM memories
WHERE workspace_id = %(workspace_id)s AND memory_id = ANY(%(ids)s::uuid[])
"""
SET_LENGTH = "UPDATE workspaces SET mean_length = %(length)s WHERE workspace_id = %(workspace_id)s"
"""A statement of its own: on a cluster, none reads a table of the nodes and writes one that all of them have."""
SIZES = """
SELECT c.relname::text, pg_table_size(c.oid) / 1e6::float8 FROM pg_class c WHERE c.oid IN (
    SELECT CAST(name AS regclass) FROM unnest(%(tables)s::text[]) AS name
    UNION SELECT indexrelid FROM pg_index JOIN unnest(%(tables)s::text[]) AS name ON indrelid = CAST(name AS regclass)
) AND pg_table_size(c.oid) > 1e6 ORDER BY 2 DESC
"""
EMBEDDING = np.dtype(
    [("fields", ">i2"), ("l1", ">i4"), ("workspace_id", ">i8"), ("l2", ">i4"), ("upper", ">u8"), ("lower", ">u8"),
     ("l3", ">i4"), ("model_id", ">i2"), ("l4", ">i4"), ("passage", ">i2"), ("l5", ">i4"), ("starts", ">i4"),
     ("l6", ">i4"), ("dimension", ">i2"), ("unused", ">i2"), ("numbers", ">f2", DIMENSION)]
)  # fmt: skip
"""A row of `embeddings` as COPY takes it in binary form: before each column its length in bytes."""
LENGTHS = {"l1": 8, "l2": 16, "l3": 2, "l4": 2, "l5": 4, "l6": 4 + 2 * DIMENSION}


class Bulk(NamedTuple):
    """Where the rows go."""

    url: str
    workspace_id: int
    model: StoredModel
    size: int


def memory_id(number: int) -> UUID:
    """Returns the id of a memory by its number, in the order of time as ids of version 7 are."""
    return UUID(int=((FIRST_MOMENT + number) << 16 | 0x7000) << 64 | 1 << 63 | number)


def copy_vectors(bulk: Bulk, corpus: Corpus) -> None:
    """Stores a vector for each memory."""
    with _connected(bulk.url) as connection:
        for start in range(0, bulk.size, PORTION):
            size = min(PORTION, bulk.size - start)
            rows = _embedding_rows(bulk, start, corpus.vectors(size))
            with connection.cursor().copy(
                f"COPY {bulk.model.partition} (workspace_id, memory_id, model_id, passage, starts, embedding)"
                " FROM STDIN (FORMAT binary)"
            ) as copy:
                copy.write(SIGNATURE + rows + END)


def _embedding_rows(bulk: Bulk, start: int, vectors: NDArray[np.float32]) -> bytes:
    rows = np.zeros(len(vectors), EMBEDDING)
    numbers = np.arange(start, start + len(vectors), dtype=np.uint64)
    rows["fields"] = 6
    for name, length in LENGTHS.items():
        rows[name] = length
    rows["workspace_id"], rows["model_id"], rows["dimension"] = bulk.workspace_id, bulk.model.model_id, DIMENSION
    rows["upper"] = (np.uint64(FIRST_MOMENT) + numbers) << np.uint64(16) | np.uint64(0x7000)
    rows["lower"] = np.uint64(1 << 63) | numbers
    rows["numbers"] = vectors
    return rows.tobytes()


def copy_texts(bulk: Bulk, corpus: Corpus) -> None:
    """Stores the memories with their sources."""
    with _connected(bulk.url) as connection, connection.cursor() as cursor:
        for start in range(0, bulk.size, PORTION):
            size = min(PORTION, bulk.size - start)
            with cursor.copy("COPY sources (workspace_id, source_id, kind, uri, title) FROM STDIN") as copy:
                for number in range(start // CHUNKS_A_SOURCE, -(-(start + size) // CHUNKS_A_SOURCE)):
                    title = f"Report {number}"
                    copy.write_row(
                        (bulk.workspace_id, memory_id(SOURCE_MARK + number), "report", f"reports/{number}.md", title)
                    )
            with cursor.copy(
                "COPY memories (workspace_id, memory_id, kind, source_id, ordinal, title, body, language, tags, tokens,"
                " content_hash) FROM STDIN"
            ) as copy:
                for row in _memory_rows(bulk, corpus, start, size):
                    copy.write_row(row)


def _memory_rows(bulk: Bulk, corpus: Corpus, start: int, size: int) -> Iterator[tuple[object, ...]]:
    for number, memory in enumerate(corpus.memories(size, start), start):
        source = memory_id(SOURCE_MARK + number // CHUNKS_A_SOURCE)
        digest = hashlib.sha256(f"{number} {memory.body}".encode()).digest()
        yield (
            bulk.workspace_id, memory_id(number), memory.kind, source, memory.ordinal, memory.title, memory.body,
            "english", list(memory.tags), len(memory.body) // 5, digest,
        )  # fmt: skip


def copy_words(bulk: Bulk) -> None:
    """Makes the rows of `lexical` as the service does, without their index, and drops that."""
    with _connected(bulk.url) as connection:
        connection.execute("DROP INDEX lexical_terms_ix")
        of = {"workspace_id": bulk.workspace_id}
        (length,) = connection.execute(FIRST_LENGTH, {**of, "ids": _ids(0, PORTION)}).fetchone() or (None,)
        connection.execute(SET_LENGTH, {**of, "length": length})
        for start in range(0, bulk.size, PORTION):
            ids = _ids(start, min(PORTION, bulk.size - start))
            connection.execute(INDEX_WORDS, {"workspace_id": bulk.workspace_id, "ids": ids, "k1": K1, "b": B})


def _ids(start: int, count: int) -> list[UUID]:
    return [memory_id(number) for number in range(start, start + count)]


def build_word_index(bulk: Bulk) -> None:
    """Builds the index of words again, over all rows at once."""
    with _connected(bulk.url) as connection:
        connection.execute("CREATE INDEX lexical_terms_ix ON lexical USING gin (terms) WITH (fastupdate = on)")


def sizes(bulk: Bulk) -> list[tuple[str, float]]:
    """Returns the megabytes of each table and index of the memories, the largest first."""
    with _connected(bulk.url) as connection:
        return connection.execute(SIZES, {"tables": ["memories", "lexical", bulk.model.partition]}).fetchall()


@contextmanager
def _connected(url: str) -> Iterator[psycopg.Connection]:
    """Opens a connection of the superuser whose rows no foreign key checks: all are written together."""
    with psycopg.connect(libpq_url(url), autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("SET synchronous_commit = off")
        yield connection
