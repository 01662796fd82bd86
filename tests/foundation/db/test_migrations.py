"""The schema: made from nothing, from the last store before the baseline, and secured again after a restore."""

import asyncio
import gzip
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from alembic import command
from procrastinate.schema import SchemaManager
from sqlalchemy import make_url

from app.errors import ConfigurationError
from app.foundation.db.database import Database
from app.foundation.db.migrations import SCHEMA, SCRIPTS, configuration, current, head, state, upgrade
from app.foundation.db.pool import libpq_url
from app.foundation.models.protocols import TokenCounter
from app.foundation.postgres.cluster import binary
from app.foundation.postgres.embedded import EmbeddedPostgres
from app.storage.index import models
from app.storage.memories.memory import NewMemory
from app.storage.memories.remember import WriteGate
from app.storage.memories.service import Memories
from tests.conftest import workspace_in

STORE_0048 = Path(__file__).with_name("store_0048.sql.gz")
"""A store of the last revision before the baseline, as pg_dump writes it: a note `kept`, a judged run with its
observation and its rating, a recall, a context, a template and an item, in the workspace `w`."""


AT_THE_BASELINE = """
WITH recall AS (
    INSERT INTO recalls (workspace_id, recall_id, purpose, query, parameters, mode, degraded, took_ms, hits)
    SELECT workspace_id, gen_random_uuid(), 'search', 'tea', '{}', 'lexical', '[]', 1, 1 FROM workspaces
    RETURNING workspace_id, recall_id
)
INSERT INTO recall_hits (workspace_id, recall_id, rank, memory_id, score, explain)
SELECT workspace_id, recall_id, 1, gen_random_uuid(), 1, '{}' FROM recall
"""
"""Writes a recall as the version of the baseline does."""


RATED_SAMPLES = """
WITH memory AS (
    SELECT workspace_id, memory_id FROM observations LIMIT 1
), shown AS (
    UPDATE observations o SET sample = 1 FROM memory WHERE o.memory_id = memory.memory_id
), entries(feedback_id, rating, undoes, sample) AS (
    VALUES (1, 1, NULL, 1), (2, NULL, 1, 0), (3, -1, NULL, 0), (4, NULL, 3, 1), (5, 1, NULL, 1), (6, -1, NULL, 2)
), rated AS (
    INSERT INTO feedback (workspace_id, feedback_id, memory_id, rating, undoes, sample)
    SELECT workspace_id, lpad(feedback_id::text, 32, '0')::uuid, memory_id, rating, lpad(undoes::text, 32, '0')::uuid,
        sample
    FROM memory, entries
)
INSERT INTO samples (workspace_id, memory_id, sample, title, narrative, facts, compressor)
SELECT workspace_id, memory_id, sample, 'Tea', 'sample ' || sample, '{}', 'llm'
FROM memory, generate_series(0, 2) sample
"""
"""Gives the observation three samples, of which it has the text of the second one. The ratings 1 and 5 are of that one;
the entries 2 and 4 undo the ratings 1 and 3, with another sample's number, as they had it at first."""
RATINGS_LEFT = """
SELECT right(feedback_id::text, 1)::int FROM feedback
WHERE feedback_id::text LIKE '00000000-%' ORDER BY position
"""


CALLED = """
WITH memory AS (
    INSERT INTO memories (workspace_id, memory_id, kind, title, body, language, content_hash, tokens)
    SELECT workspace_id, gen_random_uuid(), 'message', '', body, 'english', body::bytea, 1
    FROM workspaces, unnest(ARRAY['never push', 'Fine.']) AS body RETURNING workspace_id, memory_id, body
)
INSERT INTO messages (workspace_id, memory_id, role, digest)
SELECT workspace_id, memory_id, CASE body WHEN 'Fine.' THEN 'assistant' ELSE 'caller' END, '' FROM memory
"""
"""Writes two turns of a session in which an agent asks another one."""


async def fill(url: str, counter: TokenCounter, *bodies: str) -> None:
    """Stores notes with these bodies in the workspace `w`, and registers a model."""
    database = Database(url, pool_size=2)
    workspace = await workspace_in(database, "w")
    await WriteGate(database=database, counter=counter).remember(
        workspace, [NewMemory(kind="note", body=body) for body in bodies]
    )
    async with database.session(workspace) as session:
        await models.register(session, "model", 3)
    await database.close()


def load_store_0048(url: str) -> None:
    load(url, gzip.decompress(STORE_0048.read_bytes()))


def load(url: str, statements: bytes) -> None:
    loading = [str(binary("psql")), "--quiet", "--set", "ON_ERROR_STOP=1", libpq_url(url)]
    loaded = subprocess.run(loading, input=statements, check=False, capture_output=True)
    assert loaded.returncode == 0, loaded.stderr


async def used(url: str) -> list[Any]:
    """Returns what is left of STORE_0048: hits of recalls, scores of runs, tasks of observations, ratings."""
    database = Database(url, pool_size=1)
    async with database.session(await workspace_in(database, "w")) as session:
        columns = ("hits FROM recalls", "final_score FROM runs", "task FROM observations", "rating FROM feedback")
        found = [await session.column(f"SELECT {column} WHERE workspace_id = %(workspace_id)s") for column in columns]
    await database.close()
    return found


async def bodies(url: str) -> list[str]:
    """Returns the bodies of all memories of the workspace `w`."""
    database = Database(url, pool_size=1)
    found = [memory.body for memory in await Memories(database=database).list_live(await workspace_in(database, "w"))]
    await database.close()
    return found


async def remedy(url: str) -> str:
    """Returns what the state of the schema says is to be done."""
    database = Database(url, pool_size=1)
    found = await state(database)
    await database.close()
    return found.mend


def dumped(url: str, *options: str) -> str:
    """Returns the schema of a database as pg_dump writes it, without what differs from run to run."""
    command = [str(binary("pg_dump")), "--schema-only", *options, libpq_url(url)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return "\n".join(line for line in lines if not line.startswith(("\\restrict", "\\unrestrict")))


async def test_the_schema_is_what_its_file_says(database: Database) -> None:
    """Its columns, keys and foreign keys, as `SCHEMA` reads them."""
    columns = """
    SELECT c.relname, array_agg(a.attname::text ORDER BY a.attnum) FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid WHERE c.relnamespace = current_schema()::regnamespace AND a.attnum > 0
        AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND NOT a.attisdropped
        AND c.relname !~ '^procrastinate_|^alembic_version$' GROUP BY c.relname
    """
    keys = """
    SELECT conrelid::regclass::text, contype::text, confrelid::regclass::text, (
        SELECT array_agg(attname::text ORDER BY place) FROM unnest(conkey) WITH ORDINALITY AS k(number, place)
        JOIN pg_attribute ON attrelid = conrelid AND attnum = number
    ), (
        SELECT array_agg(attname::text ORDER BY place) FROM unnest(confkey) WITH ORDINALITY AS k(number, place)
        JOIN pg_attribute ON attrelid = confrelid AND attnum = number
    ) FROM pg_constraint WHERE contype IN ('p', 'f') AND conparentid = 0
        AND conrelid IN (SELECT oid FROM pg_class WHERE relname = ANY(%(names)s::text[]))
    """
    async with database.across() as session:
        found = {row[0]: row[1] for row in await session.rows(columns)}
        constraints = await session.rows(keys, {"names": list(SCHEMA)})
    assert {name: sorted(table.columns) for name, table in SCHEMA.items()} == {
        name: sorted(names) for name, names in found.items()
    }
    assert {row[0]: tuple(row[3]) for row in constraints if row[1] == "p"} == {
        name: table.key for name, table in SCHEMA.items()
    }
    referring = {(row[0], tuple(row[3]), row[2], tuple(row[4])) for row in constraints if row[1] == "f"}
    assert referring == {
        (name, key.columns, key.table, SCHEMA[key.table].key)
        for name, table in SCHEMA.items()
        for key in table.references
    }


def test_the_migrations_make_what_the_files_of_the_schema_state(
    empty_database_url: str, undistributed_database_url: str
) -> None:
    """The baseline is frozen, so each later change stands in a migration and in these files."""
    version = "CREATE TABLE alembic_version (version_num text PRIMARY KEY)"
    files = [(SCRIPTS / name).read_text(encoding="utf-8") for name in ("schema.sql", "security.sql")]
    with psycopg.connect(libpq_url(empty_database_url)) as connection:
        for statements in (version, SchemaManager.get_schema(), *files):
            connection.execute(statements.encode())
    stated, migrated = (
        dumped(url, "--exclude-table=alembic_version") for url in (empty_database_url, undistributed_database_url)
    )
    assert stated == migrated


def test_the_printed_statements_make_the_same_store(empty_database_url: str, undistributed_database_url: str) -> None:
    code = "from app.foundation.db.migrations import print_sql; print_sql()"
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout
    load(empty_database_url, printed)
    assert asyncio.run(remedy(empty_database_url)) == ""
    # Alembic prints four blanks for a tab.
    loaded, migrated = (dumped(url).replace("\t", "    ") for url in (empty_database_url, undistributed_database_url))
    assert loaded == migrated


@pytest.mark.test_all("migrations")
def test_a_store_of_the_last_revision_before_the_baseline_goes_on(
    empty_database_url: str, undistributed_database_url: str, counter: TokenCounter
) -> None:
    load_store_0048(empty_database_url)
    assert "priors store migrate" in asyncio.run(remedy(empty_database_url))
    upgrade(empty_database_url)
    assert asyncio.run(remedy(empty_database_url)) == ""
    assert asyncio.run(bodies(empty_database_url)) == ["observed", "kept"]
    assert asyncio.run(used(empty_database_url)) == [[1], [6.0], ["Tea in China"], [1]]
    asyncio.run(fill(undistributed_database_url, counter, "kept"))
    assert dumped(empty_database_url) == dumped(undistributed_database_url)


def test_a_store_of_the_baseline_gets_the_ledger_and_keeps_its_recalls(
    empty_database_url: str, undistributed_database_url: str, counter: TokenCounter
) -> None:
    upgrade(empty_database_url)
    asyncio.run(fill(empty_database_url, counter, "kept"))
    command.downgrade(configuration(empty_database_url), "0049")
    with psycopg.connect(libpq_url(empty_database_url)) as connection:
        connection.execute(AT_THE_BASELINE)
    upgrade(empty_database_url)
    with psycopg.connect(libpq_url(empty_database_url)) as connection:
        found = connection.execute("SELECT hits, withheld, propensity FROM recalls JOIN recall_hits USING (recall_id)")
        assert found.fetchall() == [(1, [], None)]
        assert connection.execute("SELECT uses_effects FROM workspaces").fetchall() == [(False,)]
    assert asyncio.run(bodies(empty_database_url)) == ["kept"]
    asyncio.run(fill(undistributed_database_url, counter, "kept"))
    assert dumped(empty_database_url) == dumped(undistributed_database_url)


@pytest.mark.test_all("migrations")
def test_one_compression_keeps_the_ratings_of_the_shown_sample_and_each_undo_with_its_rating(
    empty_database_url: str, undistributed_database_url: str, counter: TokenCounter
) -> None:
    load_store_0048(empty_database_url)
    command.upgrade(configuration(empty_database_url), "0059")
    with psycopg.connect(libpq_url(empty_database_url)) as connection:
        connection.execute(RATED_SAMPLES)
    upgrade(empty_database_url)
    with psycopg.connect(libpq_url(empty_database_url)) as connection:
        assert connection.execute(RATINGS_LEFT).fetchall() == [(1,), (2,), (5,)]
    command.downgrade(configuration(empty_database_url), "0050")
    upgrade(empty_database_url)
    assert asyncio.run(bodies(empty_database_url)) == ["observed", "kept"]
    asyncio.run(fill(undistributed_database_url, counter, "kept"))
    assert dumped(empty_database_url) == dumped(undistributed_database_url)


def test_action_types_become_a_setting_and_a_table_again(empty_database_url: str) -> None:
    own = [("deploy", ["deploy the release", "ship it"]), ("nothing", [])]
    load_store_0048(empty_database_url)
    command.upgrade(configuration(empty_database_url), "0061")
    with psycopg.connect(libpq_url(empty_database_url), autocommit=True) as connection:
        for name, examples in own:
            connection.execute(
                "INSERT INTO action_types (workspace_id, name, examples) SELECT workspace_id, %s, %s FROM workspaces",
                (name, examples),
            )
        upgrade(empty_database_url)
        assert connection.execute("SELECT action_types FROM workspaces").fetchall() == [(dict(own),)]
        command.downgrade(configuration(empty_database_url), "0061")
        assert connection.execute("SELECT name, examples FROM action_types ORDER BY name").fetchall() == own
    upgrade(empty_database_url)


async def test_the_state_is_told(empty_database_url: str) -> None:
    database = Database(empty_database_url, pool_size=1)
    assert await current(database) is None
    await asyncio.to_thread(upgrade, empty_database_url)
    assert await current(database) == head()
    await database.close()


async def test_an_earlier_store_is_to_be_dumped_and_loaded(own_database_url: str) -> None:
    with psycopg.connect(libpq_url(own_database_url)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0031'")
    assert "priors workspace load" in await asyncio.to_thread(lambda: asyncio.run(remedy(own_database_url)))
    with pytest.raises(ConfigurationError, match="load the dump into a new store"):
        await asyncio.to_thread(upgrade, own_database_url)


@pytest.mark.one_server("a cluster's extensions are made on each node")
def test_a_server_that_cannot_be_migrated_is_named_in_one_line(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(libpq_url(empty_database_url), autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS guest")
        connection.execute("CREATE ROLE guest CREATEROLE")
    as_guest = make_url(empty_database_url).update_query_dict({"options": "-crole=guest"})
    guest = as_guest.render_as_string(hide_password=False)
    with pytest.raises(ConfigurationError, match="CREATE EXTENSION vector") as refused:
        upgrade(guest)
    assert "\n" not in str(refused.value)
    monkeypatch.setattr("app.foundation.db.migrations.LEAST_SERVER", 990_000)
    with pytest.raises(ConfigurationError, match=r"the server is Postgres \d+.*16 or newer"):
        upgrade(empty_database_url)


async def test_two_that_migrate_at_once_both_succeed(empty_database_url: str) -> None:
    await asyncio.gather(*(asyncio.to_thread(_in_a_process, empty_database_url) for _ in range(3)))
    database = Database(empty_database_url, pool_size=1)
    assert await current(database) == head()
    await database.close()


def _in_a_process(url: str) -> None:
    code = "import sys; from app.foundation.db.migrations import upgrade; upgrade(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, url], check=True, capture_output=True)


BARE = """
SELECT c.oid::regclass::text FROM pg_class c WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace
    AND (c.relowner <> 'priors_owner'::regrole
    OR has_table_privilege('priors_service', c.oid, 'SELECT') = (c.relname = 'api_keys')
    OR EXISTS (SELECT FROM pg_attribute WHERE attrelid = c.oid AND attname = 'workspace_id')
    AND (SELECT array_agg(polname ORDER BY polname) FROM pg_policy WHERE polrelid = c.oid AND polname <> 'own_user')
        IS DISTINCT FROM '{all_workspaces,own_workspace}'
    OR EXISTS (SELECT FROM pg_attribute WHERE attrelid = c.oid AND attname = 'user_id')
        <> EXISTS (SELECT FROM pg_policy WHERE polrelid = c.oid AND polname = 'own_user'))
UNION ALL SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND (
    proname ~ '^(priors|procrastinate)_' AND proowner <> 'priors_owner'::regrole
    OR prosecdef AND EXISTS (SELECT FROM aclexplode(proacl) WHERE grantee = 0))
"""
"""Finds objects that lack their owner, a grant or a policy, keys that the service may read, and definers that everybody
may call."""


@contextmanager
def without_roles(folder: Path) -> Iterator[str]:
    """Yields the URL of an empty database on a new server, where nobody has made the roles of Priors."""
    with EmbeddedPostgres(folder) as server:
        url = server.start()
        with psycopg.connect(url, autocommit=True) as superuser:
            superuser.execute("DROP ROLE priors, priors_owner, priors_service")
        yield url


@pytest.mark.parametrize("options", [[], ["--no-owner", "--no-privileges"], ["--no-policies"]])
@pytest.mark.test_all("migrations")
def test_a_dump_that_was_restored_on_a_server_without_the_roles_is_secured_again(
    undistributed_database_url: str, counter: TokenCounter, tmp_path: Path, options: list[str]
) -> None:
    asyncio.run(fill(undistributed_database_url, counter, "kept"))
    file = str(tmp_path / "dump.sql")
    subprocess.run([binary("pg_dump"), *options, "--file", file, libpq_url(undistributed_database_url)], check=True)
    with without_roles(tmp_path / "data") as url:
        subprocess.run([str(binary("psql")), "--quiet", "--file", file, url], check=True, capture_output=True)
        assert "priors store migrate" in asyncio.run(remedy(url))
        upgrade(url)
        assert asyncio.run(remedy(url)) == ""
        with psycopg.connect(url) as superuser:
            assert superuser.execute(BARE).fetchall() == []
        assert asyncio.run(bodies(url)) == ["kept"]


CATALOGUE = """
SELECT 'pg_class', oid, xmin::text FROM pg_class WHERE relnamespace = 'public'::regnamespace
UNION ALL SELECT 'pg_policy', oid, xmin::text FROM pg_policy
UNION ALL SELECT 'pg_proc', oid, xmin::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY 1, 2
"""
"""Lists every table, index, policy and function with the transaction that wrote it last."""


def test_a_database_that_lacks_nothing_is_left_alone(undistributed_database_url: str) -> None:
    with psycopg.connect(undistributed_database_url, autocommit=True) as reader:
        before = reader.execute(CATALOGUE).fetchall()
        upgrade(undistributed_database_url)
        assert reader.execute(CATALOGUE).fetchall() == before
