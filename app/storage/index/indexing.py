"""The SQL of the lexical index, which BM25 scores, and of the queues of memories without a vector or without links."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from app.foundation.db.session import EMBED, LINK, STATISTICS, Session
from app.storage.tenants import store as workspaces

WORDS, VECTORS = "words", "vectors"
"""The steps of linking: by a memory's words at once, by its vector when it exists."""

BATCH = 256
"""Pending texts that are read at once: a read sorts the queue, which takes 0.12 s where a million memories are pending.
In a move to another model they are also written at once: if it is killed, at most 5 s of work are lost."""

OWN = "workspace_id = %(workspace_id)s"
THESE = f"{OWN} AND memory_id = ANY(%(ids)s::uuid[])"
"""The condition of given memories of the session's workspace."""
NAME = "coalesce(nullif(m.title, ''), left(m.body, 120) || CASE WHEN length(m.body) > 120 THEN ' …' ELSE '' END)"
"""The name of a memory `m` in a list: its title, or the beginning of its text, as turns have no title."""
LACKING = """lexical l {joined} WHERE NOT EXISTS (
    SELECT 1 FROM {partition} e WHERE e.workspace_id = l.workspace_id AND e.memory_id = l.memory_id
)"""
"""Live memories of all workspaces that have no vector in a partition."""

_QUEUE_FOR_VECTORS = """
INSERT INTO pending_embeddings (workspace_id, memory_id)
SELECT %(workspace_id)s, unnest(%(ids)s::uuid[])
ON CONFLICT (workspace_id, memory_id) DO UPDATE SET partial = false WHERE pending_embeddings.partial
"""
_QUEUE_LACKING = """
INSERT INTO pending_embeddings (workspace_id, memory_id)
SELECT workspace_id, memory_id FROM {lacking} ON CONFLICT DO NOTHING
"""
_QUEUE_WITHOUT_CODES = """
INSERT INTO pending_embeddings (workspace_id, memory_id, partial)
SELECT workspace_id, memory_id, true FROM {partition} WHERE passage = 0 AND tokens IS NULL ON CONFLICT DO NOTHING
"""
_LEAVE = f"DELETE FROM pending_embeddings WHERE {THESE}"  # noqa: S608 - constants
_LEAVE_UNLESS_LIVE = f"{_LEAVE} AND memory_id NOT IN (SELECT memory_id FROM lexical WHERE {THESE})"  # noqa: S608 - constants
_PENDING_AMONG = f"""
SELECT memory_id FROM pending_embeddings WHERE {THESE} AND (%(partial)s OR NOT partial)
"""  # noqa: S608 - constants
_PENDING_TEXTS = """
SELECT workspace_id, memory_id, m.title, m.body, m.content_hash, p.partial
FROM pending_embeddings p JOIN memories m USING (workspace_id, memory_id)
WHERE {condition} ORDER BY memory_id {direction} LIMIT %(limit)s
"""

_QUEUE_FOR_LINKS = """
INSERT INTO pending_links AS p (workspace_id, memory_id, step) SELECT DISTINCT {queued} ORDER BY 1, 2
ON CONFLICT (workspace_id, memory_id, step) DO UPDATE SET asked = p.asked + 1
"""
_THESE_FOR_LINKS = "%(workspace_id)s::bigint, unnest(%(ids)s::uuid[]), %(step)s"
_ALL_FOR_LINKS = "workspace_id, memory_id, %(step)s FROM embeddings JOIN embedding_models USING (model_id) WHERE active"
_LEAVE_LINKS = """
DELETE FROM pending_links p USING unnest(%(ids)s::uuid[], %(asked)s::integer[]) AS read(memory_id, asked)
WHERE p.workspace_id = %(workspace_id)s AND p.step = %(step)s AND p.memory_id = read.memory_id AND p.asked = read.asked
RETURNING p.memory_id
"""

MOST_COUNTED = 100_000
"""Memories pending for links that are counted; 100,000 take 10 ms, all of two million 0.3 s."""
PENDING_LINKS = """
SELECT count(*) FROM (
    SELECT DISTINCT workspace_id, memory_id FROM pending_links WHERE {condition} LIMIT %(most)s
) AS pending
"""

K1 = 1.2
"""Saturation of a term's frequency. K1 1.2 with B 0.4 finds more than 1.5 with 0.75 (benchmarks/retrieval.md)."""
B = 0.4
"""Share of the length normalisation."""
_DRIFT = 0.1
"""Change of the mean length, as a share, that makes all weights be recomputed; it changes a score by under 4 %."""
STALE = 0.2
"""Change of the number of documents, as a share, after which statistics are stale; an idf changes by its logarithm."""
STALE_AT_WRITES = 0.5
"""The same share right after a write. Counting at each doubling costs 0.03 ms a memory during a bulk intake;
counting after each fifth of growth would cost 0.08 ms, which is a fifth of the time that storing a memory takes."""
COUNTED_AT_WRITES = 100_000
"""Documents up to which a write has them counted: 100,000 take 10 ms, three million seconds. A larger workspace is
counted every five minutes (upkeep), from an index alone."""

# The lexical arm scores title, date and body; the date is in words, because people ask for it in words.
# It also scores an observation's task, queries and tags, and the case, version and verdict of a chunk's file.
# Materialised, because Postgres would put the parser into each of the three places that need its terms.
INDEX_WORDS = """
WITH parsed AS MATERIALIZED (
    SELECT m.memory_id, priors_terms(CAST(m.language AS regconfig), concat_ws(E'\\n',
        m.title, to_char(m.occurred_at AT TIME ZONE 'UTC', 'FMDD FMMonth YYYY'), m.body, o.task,
        array_to_string(o.queries, E'\\n'), CASE WHEN m.kind = 'chunk' THEN concat_ws(
            ' ', m.metadata ->> 'case', m.metadata ->> 'version', 'verdict ' || (m.metadata ->> 'verdict')
        ) END, CASE WHEN o.task IS NOT NULL THEN array_to_string(m.tags, E'\\n') END
    )) AS terms
    FROM memories m LEFT JOIN observations o USING (workspace_id, memory_id)
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

# Adding many memories to a word index at once takes a fifth of the time of adding each alone. They go through a list of
# pending entries, which is merged before the transaction ends, so that no later search has to read through it.
_MERGE_PENDING = "SELECT priors_merge_pending()"

_DROP_VECTORS = f"DELETE FROM embeddings WHERE {THESE}"  # noqa: S608 - constants
_FORGET = tuple(
    f"DELETE FROM {table} WHERE {THESE}"  # noqa: S608 - constants
    for table in ("lexical", "embeddings", "pending_links", "pending_embeddings")
)
_INDEXED = "SELECT memory_id FROM lexical WHERE workspace_id = %(workspace_id)s"
_COUNT = "SELECT count(*) FROM lexical WHERE workspace_id = %(workspace_id)s"
_MEAN_LENGTH = "SELECT coalesce(avg(length), 0)::real FROM lexical WHERE workspace_id = %(workspace_id)s"

_TAKE_STATISTICS = """
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

_WEIGH_AGAIN = """
UPDATE lexical SET weights = priors_weights(
    ts_delete(terms, 'workspace:' || %(workspace_id)s::text), %(mean_length)s::float8, %(k1)s, %(b)s
) WHERE workspace_id = %(workspace_id)s
"""

# The size of a table that is locked exclusively could be read only after the lock's end.
OUTGROWN = """
WITH free AS MATERIALIZED (
    SELECT c.oid, c.relname, c.relpages FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'workspace_id' AND NOT a.attisdropped
    WHERE c.relkind = 'r' AND c.relnamespace = CAST(current_schema() AS regnamespace)
        AND NOT EXISTS (SELECT FROM pg_locks l WHERE l.relation = c.oid AND l.mode = 'AccessExclusiveLock')
)
SELECT relname FROM free
WHERE pg_relation_size(oid) > %(times)s * greatest(relpages, 32) * CAST(current_setting('block_size') AS bigint)
ORDER BY 1
"""
_OUTGROWN_TIMES = 3
"""A table that is this many times as large as the planner assumes is analysed again. Until autovacuum has run, the
planner assumes that a whole scan of a new table's index costs nothing: a look-up of a known memory took 2.7 ms."""


async def index_memories(session: Session, ids: Sequence[UUID], embedded: Collection[UUID] = ()) -> None:
    """Indexes new live memories by their words. Asks a worker for new statistics, and for their vectors.

    `embedded` has the ids of memories whose vectors are stored in the same transaction (`vectors.insert_new`).
    """
    await index_words(session, ids)
    await queue_for_vectors(session, [memory_id for memory_id in ids if memory_id not in embedded])
    await enqueue_statistics(session)


async def reindex_memories(session: Session, ids: Sequence[UUID]) -> None:
    """Indexes live memories whose text has changed, and removes the vectors of their earlier texts."""
    await session.execute(_DROP_VECTORS, {"ids": ids})
    await index_memories(session, ids)


async def forget_memories(session: Session, ids: Sequence[UUID]) -> None:
    """Removes the words and vectors of retired memories, and removes these from the queues."""
    for statement in _FORGET:
        await session.execute(statement, {"ids": ids})


async def enqueue_statistics(session: Session) -> None:
    """Asks a worker to count the workspace's lexical statistics again if they have become stale."""
    await session.enqueue(STATISTICS, lock=f"{STATISTICS}:{session.workspace_id}", workspace_id=session.workspace_id)


async def index_words(session: Session, ids: Sequence[UUID]) -> None:
    """Indexes these live memories by their present words, and asks a worker to link them."""
    if not ids:
        return
    await workspaces.note_first_length(session, ids)
    await session.execute(INDEX_WORDS, {"ids": ids, "k1": K1, "b": B})
    await session.execute(_MERGE_PENDING)
    await queue_for_links(session, ids, step=WORDS)


async def index_words_again(session: Session, workspace_id: int) -> None:
    """Indexes a workspace's live memories by their words as this version reads them.

    The session sees all workspaces.
    """
    given = {"workspace_id": workspace_id}
    ids = await session.column(_INDEXED, given)
    for first in range(0, len(ids), BATCH):
        await session.execute(INDEX_WORDS, {**given, "ids": ids[first : first + BATCH], "k1": K1, "b": B})
    await session.execute(_MERGE_PENDING)


async def refresh_statistics(session: Session, *, stale: float = STALE) -> bool:
    """Counts document frequencies and lengths again if they are stale; returns whether they were.

    `stale` is the change, as a share, that makes them stale; with a negative one they always are. The workspace's row
    is locked, so that no two calls count at once.
    """
    known = await workspaces.locked_statistics(session)
    if stale >= STALE_AT_WRITES and known.document_count > COUNTED_AT_WRITES and not known.old:
        return False
    count = await session.value(_COUNT)
    if not (known.old or abs(count - known.document_count) > stale * max(count, 1)):
        return False
    mean_length = await session.value(_MEAN_LENGTH)
    await session.execute(_TAKE_STATISTICS)
    await workspaces.note_count(session, count)
    if count and abs(mean_length - known.mean_length) > _DRIFT * known.mean_length:
        await workspaces.set_mean_length(session, mean_length)
        await session.execute(_WEIGH_AGAIN, {"mean_length": mean_length, "k1": K1, "b": B})
        await session.execute(_MERGE_PENDING)
    return True


async def inform_planner(session: Session) -> None:
    """Analyses tables that have grown far beyond the size that Postgres knows; reading their samples takes 0.2 s.

    They are all tables of a workspace's rows, with the partitions of vectors. The session is the owner's.
    """
    for table in await session.column(OUTGROWN, {"times": _OUTGROWN_TIMES}):
        await session.execute(f"ANALYZE (SKIP_LOCKED) {table} (workspace_id)")


class PendingText(NamedTuple):
    """A memory that lacks a vector, and its text to embed."""

    workspace_id: int
    memory_id: UUID
    title: str
    body: str
    content_hash: bytes
    """Hash of the text, which may have changed when its vector comes."""
    partial: bool = False
    """True if it has its first vector, and lacks those of later passages, or the codes of its words."""


async def queue_for_vectors(session: Session, ids: Sequence[UUID]) -> None:
    """Queues memories for a vector, and asks a worker, in this transaction."""
    if ids:
        await session.execute(_QUEUE_FOR_VECTORS, {"ids": ids})
        await session.enqueue(EMBED)


async def leave_queue(session: Session, ids: Sequence[UUID]) -> None:
    """Removes memories that have their vector from the queue."""
    await session.execute(_LEAVE, {"ids": ids})


async def leave_queue_unless_live(session: Session, ids: Sequence[UUID]) -> None:
    """Removes the retired ones of these memories from the queue."""
    await session.execute(_LEAVE_UNLESS_LIVE, {"ids": ids})


async def pending_among(session: Session, ids: Sequence[UUID], *, partial: bool = False) -> set[UUID]:
    """Returns the memories among these that are pending for a vector.

    With `partial` also those that lack only vectors of later passages, or codes of words.
    """
    return set(await session.column(_PENDING_AMONG, {"ids": ids, "partial": partial}))


async def pending_texts(
    session: Session, *, limit: int, ids: Sequence[UUID] | None = None, of_all: bool = False
) -> list[PendingText]:
    """Returns memories of the workspace that are pending for a vector, oldest first; with `ids` only these.

    With `of_all` those of all workspaces, newest first.
    """
    condition, direction = ("true", "DESC") if of_all else (OWN if ids is None else THESE, "ASC")
    statement = _PENDING_TEXTS.format(condition=condition, direction=direction)
    return [PendingText(*row) for row in await session.tuples(statement, {"limit": limit, "ids": ids or ()})]


async def pending_count(session: Session) -> int:
    """Returns how many memories are pending for a vector, in all workspaces."""
    return int(await session.value("SELECT count(*) FROM pending_embeddings"))


async def pending_links_count(session: Session) -> int:
    """Returns how many memories of all workspaces are pending for links, MOST_COUNTED at most."""
    return int(await session.value(PENDING_LINKS.format(condition="true"), {"most": MOST_COUNTED}))


async def queued_count_of_all(session: Session, partition: str) -> int:
    """Returns how many live memories of all workspaces are queued and lack a vector in this partition."""
    lacking = LACKING.format(joined="JOIN pending_embeddings USING (workspace_id, memory_id)", partition=partition)
    return int(await session.value(f"SELECT count(*) FROM {lacking}"))  # noqa: S608 - made of a number


async def queue_lacking_of_all(session: Session, partition: str) -> None:
    """Queues every live memory of all workspaces that lacks a vector in this partition, and asks a worker."""
    await session.execute(_QUEUE_LACKING.format(lacking=LACKING.format(joined="", partition=partition)))
    await session.enqueue(EMBED)


async def queue_without_codes_of_all(session: Session, partition: str) -> None:
    """Queues the memories of all workspaces whose words have no codes in this partition, and asks a worker."""
    if await session.execute(_QUEUE_WITHOUT_CODES.format(partition=partition)):
        await session.enqueue(EMBED)


async def queue_for_links(session: Session, ids: Sequence[UUID], *, step: str) -> None:
    """Queues these live memories to be linked by their WORDS or VECTORS, and asks a worker, in this transaction.

    A memory that is queued again while it is being linked is linked once more.
    """
    if ids:
        await session.execute(_QUEUE_FOR_LINKS.format(queued=_THESE_FOR_LINKS), {"ids": ids, "step": step})
        await session.enqueue(LINK)


async def queue_all_for_links(session: Session) -> None:
    """Queues all memories of all workspaces to be linked by the served model's vectors."""
    await session.execute(_QUEUE_FOR_LINKS.format(queued=_ALL_FOR_LINKS), {"step": VECTORS})
    await session.enqueue(LINK)


async def leave_links(session: Session, asked: Mapping[UUID, int], *, step: str) -> set[UUID]:
    """Removes linked memories from the queue, except those queued again since they were read; returns the removed."""
    given = {"ids": asked, "asked": asked.values(), "step": step}
    return set(await session.column(_LEAVE_LINKS, given))
