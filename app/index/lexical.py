"""The lexical representation of memories for BM25, in a narrow table of its own."""

from collections.abc import Sequence
from uuid import UUID

from app.db.database import Database
from app.db.session import Across, Session
from app.index.pending import WORDS, queue_for_links

K1 = 1.2
"""Saturation of a term's frequency. With b 0.4 it finds more than 1.5 and 0.75 do (docs/retrieval.md)."""
B = 0.4
"""Share of the length normalisation."""
DRIFT = 0.1
"""Share by which the mean length may move before every weight is made anew; at b 0.4 it moves a score by under 4 %."""
STALE = 0.2
"""Share by which the number of documents may move before statistics are taken anew: an idf moves by the logarithm."""
STALE_AT_WRITES = 0.5
"""The same share right after a write. While memories pour in statistics are taken at each doubling, 0.03 ms a memory in
all; taken after each fifth of growth they cost 0.08 ms, a fifth of what it takes to store one."""

# Title, date and body are what the lexical arm scores; the date in words is how people ask for it.
# Materialised, because Postgres would put the parser into each of the three places that need its terms.
INDEX = """
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

FIRST_MEAN_LENGTH = """
UPDATE workspaces SET mean_length = greatest(1, (
    SELECT avg(priors_length(priors_terms(CAST(m.language AS regconfig), concat_ws(E'\\n', m.title, m.body))))
    FROM memories m WHERE m.workspace_id = %(workspace_id)s AND m.memory_id = ANY(%(ids)s::uuid[])
))
WHERE workspace_id = %(workspace_id)s AND mean_length = 0
"""

COUNT = "SELECT count(*), coalesce(avg(length), 0)::real FROM lexical WHERE workspace_id = %(workspace_id)s"

NOTE_COUNT = """
UPDATE workspaces SET document_count = %(count)s, statistics_at = now() WHERE workspace_id = %(workspace_id)s
"""

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

WEIGH_ANEW = """
WITH measured AS (
    UPDATE workspaces SET mean_length = %(mean_length)s WHERE workspace_id = %(workspace_id)s
)
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
"""A table that is so many times as large as the planner thinks is measured again. Of an empty table's indexes it thinks
that reading them whole costs nothing, until autovacuum comes by: known memories were looked up at 2.7 ms each."""

STATISTICS = """
SELECT document_count, mean_length, statistics_at < now() - interval '1 day' AS old
FROM workspaces WHERE workspace_id = %(workspace_id)s FOR NO KEY UPDATE
"""


async def index(session: Session, ids: Sequence[UUID]) -> None:
    """Index these live memories by their present words, and ask a worker to link them."""
    if not ids:
        return
    given = {"ids": list(ids)}
    await session.execute(FIRST_MEAN_LENGTH, given)
    await session.execute(INDEX, {**given, "k1": K1, "b": B})
    await session.execute(MERGE_PENDING)
    await queue_for_links(session, ids, step=WORDS)


async def refresh_statistics(session: Session, *, stale: float = STALE) -> bool:
    """Take document frequencies and lengths anew if they have become so stale; returns whether they had.

    Locks the workspace's row, so that two do not count at once; NO KEY, so that writers of memories go on.
    """
    known = await session.one(STATISTICS)
    count, mean_length = await session.one(COUNT)
    if not (known.old or abs(count - known.document_count) > stale * count):
        return False
    await session.execute(TAKE_STATISTICS)
    await session.execute(NOTE_COUNT, {"count": count})
    if count and abs(mean_length - known.mean_length) > DRIFT * known.mean_length:
        await session.execute(WEIGH_ANEW, {"mean_length": mean_length, "k1": K1, "b": B})
        await session.execute(MERGE_PENDING)
    return True


async def inform_planner(session: Session) -> None:
    """Tell Postgres the size of tables that have grown far beyond what it knows: 0.2 s of reading a sample.

    The session is the owner's.
    """
    for table in await session.column(OUTGROWN, {"times": OUTGROWN_TIMES}):
        await session.execute(f"ANALYZE {table} (workspace_id)")


async def refresh_workspace_statistics(
    database: Database, workspace_id: int, *, across: Across, stale: float = STALE
) -> bool:
    """Take a workspace's document frequencies and lengths anew if they have become so stale; returns whether they had.

    The planner learns of tables that have grown, too.
    """
    async with across(transaction=False) as session:
        await inform_planner(session)
    async with database.session(workspace_id) as session:
        return await refresh_statistics(session, stale=stale)


async def refresh_all_statistics(database: Database, *, across: Across, stale: float = STALE) -> int:
    """Take the statistics of every workspace anew where they are so stale. Returns in how many they were."""
    async with across() as session:
        ids = await session.column("SELECT workspace_id FROM workspaces ORDER BY 1")
    return sum(
        [await refresh_workspace_statistics(database, workspace_id, across=across, stale=stale) for workspace_id in ids]
    )
