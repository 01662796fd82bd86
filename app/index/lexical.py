"""The lexical representation: what BM25 needs, kept beside the memories in a narrow table of its own."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.engine import Database
from app.index.pending import WORDS, wait_for_links

K1 = 1.2
"""Saturation of a term's frequency. With b 0.4 it finds more than 1.5 and 0.75 do (docs/retrieval.md)."""
B = 0.4
"""Share of the length normalisation."""
DRIFT = 0.1
"""The mean length may move by this share before every weight is made anew; at b 0.4 it moves a score by under 4 %."""
STALE = 0.2
"""Statistics are taken anew when the number of documents has moved by this share: an idf moves by the logarithm."""
STALE_AT_WRITES = 0.5
"""The same right after a write. While memories pour in they are taken at each doubling, 0.03 ms a memory in all; taken
after each fifth of growth they cost 0.08 ms, a fifth of what it takes to store one."""

# Title, date and body are what the lexical arm scores; the date in words is how people ask for it.
# Materialised, because Postgres would put the parser into each of the three places that need its terms.
INDEX = text("""
WITH parsed AS MATERIALIZED (
    SELECT m.memory_id, priors_terms(CAST(m.language AS regconfig), concat_ws(E'\\n',
        m.title, to_char(m.occurred_at AT TIME ZONE 'UTC', 'FMDD FMMonth YYYY'), m.body)) AS terms
    FROM memories m
    WHERE m.workspace_id = :workspace_id AND m.memory_id = ANY(CAST(:ids AS uuid[])) AND m.valid_until IS NULL
)
INSERT INTO lexical (workspace_id, memory_id, terms, weights, length)
SELECT :workspace_id, memory_id, terms || array_to_tsvector(ARRAY['workspace:' || CAST(:workspace_id AS text)]),
    priors_weights(terms, (SELECT mean_length FROM workspaces WHERE workspace_id = :workspace_id), :k1, :b),
    priors_length(terms)
FROM parsed
ON CONFLICT (workspace_id, memory_id) DO UPDATE
SET terms = EXCLUDED.terms, weights = EXCLUDED.weights, length = EXCLUDED.length
""")

# A word index takes many memories at once for a fifth of what it takes for each alone: they come in over a list of
# pending entries, which is merged before the transaction ends, so that no later search has to read through it.
MERGE_PENDING = text("SELECT gin_clean_pending_list('lexical_terms_ix'::regclass)")

FIRST_MEAN_LENGTH = text("""
UPDATE workspaces SET mean_length = greatest(1, (
    SELECT avg(priors_length(priors_terms(CAST(m.language AS regconfig), concat_ws(E'\\n', m.title, m.body))))
    FROM memories m WHERE m.workspace_id = :workspace_id AND m.memory_id = ANY(CAST(:ids AS uuid[]))
))
WHERE workspace_id = :workspace_id AND mean_length = 0
""")

COUNT = text("SELECT count(*), coalesce(avg(length), 0)::real FROM lexical WHERE workspace_id = :workspace_id")

NOTE_COUNT = text("""
UPDATE workspaces SET document_count = :count, statistics_at = now() WHERE workspace_id = :workspace_id
""")

TAKE_STATISTICS = text("""
WITH counted AS MATERIALIZED (
    SELECT word AS lexeme, ndoc AS document_count
    FROM ts_stat('SELECT terms FROM lexical WHERE workspace_id = ' || CAST(:workspace_id AS bigint))
    WHERE word <> 'workspace:' || CAST(:workspace_id AS text)
), gone AS (
    DELETE FROM lexeme_statistics s WHERE s.workspace_id = :workspace_id
    AND NOT EXISTS (SELECT 1 FROM counted c WHERE c.lexeme = s.lexeme)
)
INSERT INTO lexeme_statistics AS s (workspace_id, lexeme, document_count)
SELECT :workspace_id, lexeme, document_count FROM counted
ON CONFLICT (workspace_id, lexeme) DO UPDATE SET document_count = EXCLUDED.document_count
WHERE s.document_count <> EXCLUDED.document_count
""")

WEIGH_ANEW = text("""
WITH measured AS (
    UPDATE workspaces SET mean_length = :mean_length WHERE workspace_id = :workspace_id
)
UPDATE lexical SET weights = priors_weights(
    ts_delete(terms, 'workspace:' || CAST(:workspace_id AS text)), CAST(:mean_length AS float8), :k1, :b
) WHERE workspace_id = :workspace_id
""")

OUTGROWN = text("""
SELECT relname FROM pg_class
WHERE oid IN (CAST('memories' AS regclass), CAST('lexical' AS regclass))
    AND pg_relation_size(oid) > :times * greatest(relpages, 32) * CAST(current_setting('block_size') AS bigint)
ORDER BY 1
""")
OUTGROWN_TIMES = 3
"""A table that is so many times as large as the planner thinks is measured again. Of an empty table's indexes it thinks
that reading them whole costs nothing, until autovacuum comes by: known memories were looked up at 2.7 ms each."""

STATISTICS = text("""
SELECT document_count, mean_length, statistics_at < now() - interval '1 day' AS old
FROM workspaces WHERE workspace_id = :workspace_id FOR NO KEY UPDATE
""")


async def index(connection: AsyncConnection, workspace_id: int, ids: Sequence[UUID]) -> None:
    """Make these live memories findable by their words, as they now are, and ask a worker to link them."""
    if not ids:
        return
    given = {"workspace_id": workspace_id, "ids": list(ids)}
    await connection.execute(FIRST_MEAN_LENGTH, given)
    await connection.execute(INDEX, {**given, "k1": K1, "b": B})
    await connection.execute(MERGE_PENDING)
    await wait_for_links(connection, workspace_id, ids, step=WORDS)


async def refresh_statistics(
    connection: AsyncConnection, workspace_id: int, *, force: bool = False, stale: float = STALE
) -> bool:
    """Take document frequencies and lengths anew if they have become so stale; whether they had.

    Locks the workspace's row, so that two do not count at once; NO KEY, so that writers of memories go on.
    """
    given = {"workspace_id": workspace_id}
    known = (await connection.execute(STATISTICS, given)).one()
    count, mean_length = (await connection.execute(COUNT, given)).one()
    if not (force or known.old or abs(count - known.document_count) > stale * count):
        return False
    await connection.execute(TAKE_STATISTICS, given)
    await connection.execute(NOTE_COUNT, {**given, "count": count})
    if count and abs(mean_length - known.mean_length) > DRIFT * known.mean_length:
        await connection.execute(WEIGH_ANEW, {**given, "mean_length": mean_length, "k1": K1, "b": B})
        await connection.execute(MERGE_PENDING)
    return True


async def inform_planner(connection: AsyncConnection) -> None:
    """Tell Postgres how large the tables have become, where it is far off: 0.2 s of reading a sample."""
    for table in (await connection.execute(OUTGROWN, {"times": OUTGROWN_TIMES})).scalars().all():
        await connection.execute(text(f"ANALYZE {table} (workspace_id)"))


async def refresh_workspace_statistics(
    database: Database, workspace_id: int, *, force: bool = False, stale: float = STALE
) -> bool:
    """Take a workspace's document frequencies and lengths anew, if they have become so stale; whether they had.

    The planner learns of tables that have grown, too.
    """
    async with database.statements() as connection:
        await inform_planner(connection)
    async with database.transaction() as connection:
        return await refresh_statistics(connection, workspace_id, force=force, stale=stale)


async def refresh_all_statistics(database: Database, *, stale: float = STALE) -> int:
    """The same for every workspace. How many were so stale."""
    async with database.statements() as connection:
        ids = (await connection.execute(text("SELECT workspace_id FROM workspaces ORDER BY 1"))).scalars().all()
    return sum([await refresh_workspace_statistics(database, workspace_id, stale=stale) for workspace_id in ids])
