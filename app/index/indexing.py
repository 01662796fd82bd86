"""Indexes memories by their words for BM25, in a narrow table of its own, and by the vectors that they have."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from app.db.session import INDEX, STATISTICS, Session
from app.index import vectors
from app.index.models import StoredModel
from app.index.pending import THESE, VECTORS, WORDS, queue_for_links, queue_for_vectors
from app.models.protocols import Matrix
from app.workspaces import store as workspaces

K1 = 1.2
"""Saturation of a term's frequency. With b 0.4 it finds more than 1.5 and 0.75 do (docs/retrieval.md)."""
B = 0.4
"""Share of the length normalisation."""
DRIFT = 0.1
"""Share by which the mean length may move before all weights are recomputed; at b 0.4 it moves a score by under 4 %."""
STALE = 0.2
"""Share by which the number of documents may move before statistics are counted again; an idf moves by its log."""
STALE_AT_WRITES = 0.5
"""The same share right after a write. While memories pour in statistics are taken at each doubling, 0.03 ms a memory in
all; taken after each fifth of growth they cost 0.08 ms, a fifth of what it takes to store one."""

# Title, date and body are what the lexical arm scores; the date in words is how people ask for it.
# Materialised, because Postgres would put the parser into each of the three places that need its terms.
INDEX_WORDS = """
WITH parsed AS MATERIALIZED (
    SELECT m.memory_id, priors_terms(CAST(m.language AS regconfig), concat_ws(E'\\n',
        m.title, to_char(m.occurred_at AT TIME ZONE 'UTC', 'FMDD FMMonth YYYY'), m.body)) AS terms
    FROM memories m
    WHERE m.workspace_id = %(workspace_id)s AND m.memory_id = ANY(%(ids)s::uuid[]) AND m.valid_until IS NULL
)
INSERT INTO lexical (workspace_id, memory_id, terms, weights, length)
SELECT %(workspace_id)s, memory_id, terms || array_to_tsvector(ARRAY['workspace:' || %(workspace_id)s::text]),
    priors_weights(terms, (SELECT mean_length FROM workspaces WHERE workspace_id = %(workspace_id)s), %(k1)s, %(b)s),
    priors_length(terms)
FROM parsed
ON CONFLICT (workspace_id, memory_id) DO UPDATE
SET terms = EXCLUDED.terms, weights = EXCLUDED.weights, length = EXCLUDED.length
"""

# A word index takes many memories at once for a fifth of what it takes for each alone: they come in over a list of
# pending entries, which is merged before the transaction ends, so that no later search has to read through it.
MERGE_PENDING = "SELECT priors_merge_pending()"

DROP_VECTORS = f"DELETE FROM embeddings WHERE {THESE}"  # noqa: S608 - constants
FORGET = (
    f"DELETE FROM lexical WHERE {THESE}",  # noqa: S608 - constants
    DROP_VECTORS,
    f"DELETE FROM pending_links WHERE {THESE}",  # noqa: S608 - constants
    f"DELETE FROM pending_embeddings WHERE {THESE}",  # noqa: S608 - constants
)
COUNT = "SELECT count(*), coalesce(avg(length), 0)::real FROM lexical WHERE workspace_id = %(workspace_id)s"

TAKE_STATISTICS = """
WITH counted AS MATERIALIZED (
    SELECT word AS lexeme, ndoc AS document_count
    FROM ts_stat('SELECT terms FROM lexical WHERE workspace_id = ' || %(workspace_id)s::bigint)
    WHERE word <> 'workspace:' || %(workspace_id)s::text
), gone AS (
    DELETE FROM lexeme_statistics s WHERE s.workspace_id = %(workspace_id)s
    AND NOT EXISTS (SELECT 1 FROM counted c WHERE c.lexeme = s.lexeme)
)
INSERT INTO lexeme_statistics AS s (workspace_id, lexeme, document_count)
SELECT %(workspace_id)s, lexeme, document_count FROM counted
ON CONFLICT (workspace_id, lexeme) DO UPDATE SET document_count = EXCLUDED.document_count
WHERE s.document_count <> EXCLUDED.document_count
"""

WEIGH_AGAIN = """
UPDATE lexical SET weights = priors_weights(
    ts_delete(terms, 'workspace:' || %(workspace_id)s::text), %(mean_length)s::float8, %(k1)s, %(b)s
) WHERE workspace_id = %(workspace_id)s
"""

OUTGROWN = """
SELECT relname FROM pg_class
WHERE oid IN (CAST('memories' AS regclass), CAST('lexical' AS regclass))
    AND pg_relation_size(oid) > %(times)s * greatest(relpages, 32) * CAST(current_setting('block_size') AS bigint)
ORDER BY 1
"""
OUTGROWN_TIMES = 3
"""A table that is this many times as large as the planner thinks is analysed again. Until autovacuum has run, the
planner takes a whole scan of a new table's index to cost nothing: looking up known memories then took 2.7 ms each."""


class NewVectors(NamedTuple):
    """Vectors of memories that this transaction has made."""

    model: StoredModel
    """The served model, which made them."""
    ids: Sequence[UUID]
    matrix: Matrix
    """One row of unit length for each id."""


async def index_memories(session: Session, ids: Sequence[UUID], given: NewVectors | None = None) -> None:
    """Index new live memories by their words, and by the vectors that were given with them, if any.

    A worker is asked for the vectors of the others, and for fresh statistics.
    """
    await index_words(session, ids)
    if given is not None:
        await vectors.insert_new(session, given.model, given.ids, given.matrix)
        await queue_for_links(session, given.ids, step=VECTORS)
        await session.enqueue(INDEX)
    known = set() if given is None else set(given.ids)
    await queue_for_vectors(session, [memory_id for memory_id in ids if memory_id not in known])
    await enqueue_statistics(session)


async def reindex_memories(session: Session, ids: Sequence[UUID]) -> None:
    """Index live memories whose text has changed: no vector of the earlier text stays."""
    await session.execute(DROP_VECTORS, {"ids": list(ids)})
    await index_memories(session, ids)


async def forget_memories(session: Session, ids: Sequence[UUID]) -> None:
    """Remove the words and vectors of memories that are retired, and take them off the queues."""
    for statement in FORGET:
        await session.execute(statement, {"ids": list(ids)})


async def enqueue_statistics(session: Session) -> None:
    """Ask a worker to count the workspace's lexical statistics again if they have become stale."""
    await session.enqueue(STATISTICS, lock=f"{STATISTICS}:{session.workspace_id}", workspace_id=session.workspace_id)


async def index_words(session: Session, ids: Sequence[UUID]) -> None:
    """Index these live memories by their present words, and ask a worker to link them."""
    if not ids:
        return
    await workspaces.note_first_length(session, ids)
    await session.execute(INDEX_WORDS, {"ids": list(ids), "k1": K1, "b": B})
    await session.execute(MERGE_PENDING)
    await queue_for_links(session, ids, step=WORDS)


async def refresh_statistics(session: Session, *, stale: float = STALE) -> bool:
    """Count document frequencies and lengths again if they are so stale; returns whether they were.

    Two do not count at once: the workspace's row is locked.
    """
    known = await workspaces.locked_statistics(session)
    count, mean_length = await session.one(COUNT)
    if not (known.old or abs(count - known.document_count) > stale * count):
        return False
    await session.execute(TAKE_STATISTICS)
    await workspaces.note_count(session, count)
    if count and abs(mean_length - known.mean_length) > DRIFT * known.mean_length:
        await workspaces.set_mean_length(session, mean_length)
        await session.execute(WEIGH_AGAIN, {"mean_length": mean_length, "k1": K1, "b": B})
        await session.execute(MERGE_PENDING)
    return True


async def inform_planner(session: Session) -> None:
    """Tell Postgres the size of tables that have grown far beyond what it knows: 0.2 s of reading a sample.

    The session is the owner's.
    """
    for table in await session.column(OUTGROWN, {"times": OUTGROWN_TIMES}):
        await session.execute(f"ANALYZE {table} (workspace_id)")
