"""The schema: up, down, up again with rows in place, and the same as the tables say."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, NullPool, create_engine, inspect, text
from sqlalchemy.exc import IntegrityError

from app.db.database import Database
from app.db.migrations import configuration, current, head, state, upgrade
from app.db.pool import libpq_url, sqlalchemy_url
from app.db.tables import metadata
from app.index import models
from app.memories.browse import list_memories
from app.memories.filters import Filters
from app.memories.memory import NewMemory, ObservationDetail
from app.memories.remember import Door, remember
from app.models.protocols import TokenCounter
from app.postgres.cluster import binary
from app.postgres.embedded import EmbeddedPostgres
from app.runs import traces
from app.runs.feedback.rate import rate
from app.runs.record import record_run
from app.runs.run import NewRun
from tests.conftest import workspace_in

RECALL = """
WITH asked AS (
    INSERT INTO recalls (workspace_id, recall_id, purpose, query, parameters, mode, degraded, took_ms, hits)
    VALUES (%(workspace_id)s, gen_random_uuid(), 'search', 'tea', '{}', 'hybrid', '[]', 1, 1)
    RETURNING workspace_id, recall_id
)
INSERT INTO recall_hits (workspace_id, recall_id, rank, memory_id, score, explain)
SELECT workspace_id, recall_id, 1, gen_random_uuid(), 1, '{}' FROM asked
"""
CONTEXT = """
INSERT INTO contexts (workspace_id, context_id, model, format, budget, tokens, prefix, document, took_ms)
VALUES (%(workspace_id)s, gen_random_uuid(), '', 'openai', 9, 9, '', '{}', 1)
"""
TEMPLATE = """
INSERT INTO context_templates (workspace_id, name, content, label, mode, priority)
VALUES (%(workspace_id)s, 'analyst', 'You are an analyst.', '', 'hierarchical', 'critical')
"""
ITEM = "INSERT INTO items (workspace_id, namespace, key, value) VALUES (%(workspace_id)s, 'users', 'ann', '{}')"
LEARNING = "0003"
"""The migration that makes runs, observations and ratings."""
WAITS = """
SELECT EXISTS (
    SELECT FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE datname = current_database() AND NOT granted
)
"""
REVISIONS = [script.revision for script in ScriptDirectory.from_config(configuration()).walk_revisions()][::-1]


def _ours(_object: object, name: str | None, kind: str, *_: object) -> bool:
    return not (kind == "table" and name is not None and name.startswith(("procrastinate_", "embeddings_")))


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    with create_engine(sqlalchemy_url(url), poolclass=NullPool).connect() as connection:
        yield connection


def differences(connection: Connection) -> list[Any]:
    context = MigrationContext.configure(connection, opts={"include_object": _ours})
    return list(compare_metadata(context, metadata))


async def fill(url: str, counter: TokenCounter, *bodies: str) -> None:
    """Stores notes with these bodies in the workspace `w`, and registers a model."""
    database = Database(url, pool_size=2)
    workspace = await workspace_in(database, "w")
    await remember(Door(database, counter, workspace), [NewMemory(kind="note", body=body) for body in bodies])
    async with database.session(workspace) as session:
        await models.register(session, "model", 3)
    await database.close()


async def use(url: str, counter: TokenCounter) -> None:
    """Stores a judged run, an observation, and a person's rating of it in the workspace `w`."""
    database = Database(url, pool_size=2)
    place: dict[str, Any] = {"database": database, "workspace": await workspace_in(database, "w")}
    facts: dict[str, Any] = {"case": "tea", "version": "v3"}
    run = NewRun(run_id="r", final_score=6, issues=("Old prices",), stages={"scout": {"tokens": 7}}, metadata=facts)
    await record_run(**place, run=run)
    told = ObservationDetail(task="Tea in China", queries=("tea prices",))
    memory = NewMemory(kind="observation", title="Tea", body="observed", run_id="r", observation=told)
    await remember(Door(database, counter, place["workspace"], runs=traces), [memory])
    (observed,) = await list_memories(**place, filters=Filters(kinds=("observation",)))
    await rate(**place, memory_id=observed.memory_id, rating=1, reviewer="ann")
    async with database.session(place["workspace"]) as session:
        for statement in (RECALL, CONTEXT, TEMPLATE, ITEM):
            await session.execute(statement)
    await database.close()


async def used(url: str) -> list[Any]:
    """Returns what is left of what `use` stored: hits of recalls, scores of runs, tasks of observations, ratings."""
    database = Database(url, pool_size=1)
    async with database.session(await workspace_in(database, "w")) as session:
        columns = ("hits FROM recalls", "final_score FROM runs", "task FROM observations", "rating FROM feedback")
        found = [await session.column(f"SELECT {column} WHERE workspace_id = %(workspace_id)s") for column in columns]
    await database.close()
    return found


async def bodies(url: str) -> list[str]:
    """Returns the bodies of all memories of the workspace `w`."""
    database = Database(url, pool_size=1)
    found = [memory.body for memory in await list_memories(database, workspace=await workspace_in(database, "w"))]
    await database.close()
    return found


async def remedy(url: str) -> str:
    """Returns what the state of the schema says is to be done."""
    database = Database(url, pool_size=1)
    found = await state(database)
    await database.close()
    return found.mend


def test_the_migrations_make_what_the_tables_say(undistributed_database_url: str) -> None:
    with connected(undistributed_database_url) as connection:
        assert differences(connection) == []


def test_down_to_nothing_and_up_again(undistributed_database_url: str) -> None:
    config = configuration(undistributed_database_url)
    command.downgrade(config, "base")
    with connected(undistributed_database_url) as connection:
        assert inspect(connection).get_table_names() == ["alembic_version"]
        functions = "SELECT count(*) FROM pg_proc WHERE proname ~ '^(priors|procrastinate)_'"
        assert connection.execute(text(functions)).scalar_one() == 0
    command.upgrade(config, "head")
    with connected(undistributed_database_url) as connection:
        assert differences(connection) == []


@pytest.mark.parametrize("revision", REVISIONS[1:])
def test_each_migration_goes_down_and_up_with_rows_in_place(
    undistributed_database_url: str, counter: TokenCounter, revision: str
) -> None:
    asyncio.run(fill(undistributed_database_url, counter, "kept"))
    asyncio.run(use(undistributed_database_url, counter))
    config = configuration(undistributed_database_url)
    command.downgrade(config, REVISIONS[REVISIONS.index(revision) - 1])
    command.upgrade(config, "head")
    assert asyncio.run(bodies(undistributed_database_url)) == ["observed", "kept"]
    kept = [[6.0], ["Tea in China"], [1]] if revision > LEARNING else [[], [], []]
    assert asyncio.run(used(undistributed_database_url)) == [[1], *kept]


def test_reports_whose_judgements_a_downgrade_drops_are_read_again(undistributed_database_url: str) -> None:
    statements = """
        INSERT INTO workspaces (name, language, languages) VALUES ('w', 'english', '{english}');
        INSERT INTO sources (workspace_id, source_id, kind, uri, title, content_hash)
        SELECT workspace_id, gen_random_uuid(), 'report', uri, uri, 'read'
        FROM workspaces, unnest(ARRAY['a.md', 'b.md']) AS uri;
        INSERT INTO judgements (workspace_id, judgement_id, source_id, pointer, case_name, case_title, version, verdict,
            grade, judge, basis, summary, lists_issues)
        SELECT workspace_id, source_id, source_id, '', 'c', 'c', '', '', '', '', 'judged', '', false
        FROM sources WHERE uri = 'a.md'
    """
    with connected(undistributed_database_url) as connection:
        for statement in statements.split(";"):
            connection.execute(text(statement))
        connection.commit()
    command.downgrade(configuration(undistributed_database_url), "0017")
    command.upgrade(configuration(undistributed_database_url), "head")
    with connected(undistributed_database_url) as connection:
        unread = "SELECT uri FROM sources WHERE content_hash <> 'read'"
        assert list(connection.execute(text(unread)).scalars()) == ["a.md"]


def test_mended_issues_claim_nothing_until_they_are_matched_again(undistributed_database_url: str) -> None:
    statements = """
        INSERT INTO workspaces (name, language, languages) VALUES ('w', 'english', '{english}');
        INSERT INTO sources (workspace_id, source_id, kind, uri, title)
        SELECT workspace_id, gen_random_uuid(), 'report', 'a.md', '' FROM workspaces;
        INSERT INTO judgements (workspace_id, judgement_id, source_id, pointer, case_name, case_title, version, verdict,
            grade, judge, basis, summary, lists_issues, issues, matched)
        SELECT workspace_id, source_id, source_id, '', 'c', 'c', '', '', '', '', 'judged', '', false,
            '[{"title": "a", "status": "open", "mended_in": ""},
              {"title": "b", "status": "mended", "mended_in": "v7"}]', true FROM sources;
        INSERT INTO issues (workspace_id, issue_id, case_name, title, severity, status, versions, mended_in)
        SELECT workspace_id, source_id, 'c', 'b', '', 'mended', '{v6}', 'v7' FROM sources;
        INSERT INTO issue_occurrences (workspace_id, judgement_id, place, version, status, issue_id, severity)
        SELECT workspace_id, source_id, 1, 'v7', 'mended', source_id, '' FROM sources
    """
    found = """
        SELECT j.issues::text, j.matched, i.status, o.status
        FROM judgements j JOIN issues i USING (workspace_id) JOIN issue_occurrences o USING (workspace_id)
    """
    config, before = configuration(undistributed_database_url), REVISIONS[REVISIONS.index("0047") - 1]
    command.downgrade(config, before)
    with connected(undistributed_database_url) as connection:
        for statement in statements.split(";"):
            connection.exec_driver_sql(statement)
        connection.commit()
    rows = []
    for move, revision in ((command.upgrade, "head"), (command.downgrade, before)):
        move(config, revision)
        with connected(undistributed_database_url) as connection:
            ((issues, *others),) = connection.exec_driver_sql(found)
            rows.append(([tuple(sorted(item.items())) for item in json.loads(issues)], *others))
    after, back = rows
    assert after == (
        [(("since", ""), ("status", "open"), ("title", "a")),
         (("since", "v7"), ("status", "resolved"), ("title", "b"))],
        False, "unnamed", "resolved",
    )  # fmt: skip
    assert back == (
        [(("mended_in", ""), ("status", "open"), ("title", "a")),
         (("mended_in", "v7"), ("status", "mended"), ("title", "b"))],
        False, "mended", "mended",
    )  # fmt: skip


def test_texts_without_blanks_between_words_are_indexed_again(
    undistributed_database_url: str, counter: TokenCounter
) -> None:
    asyncio.run(fill(undistributed_database_url, counter, "内存泄漏", "tea"))
    words = "SELECT word FROM lexical, unnest(tsvector_to_array(terms)) AS word WHERE word NOT LIKE 'workspace:%'"
    found = []
    for move, revision in ((command.downgrade, REVISIONS[REVISIONS.index("0035") - 1]), (command.upgrade, "head")):
        move(configuration(undistributed_database_url), revision)
        with connected(undistributed_database_url) as connection:
            found.append(set(connection.execute(text(words)).scalars()))
    assert found == [{"内存泄漏", "tea"}, {"内存", "存泄", "泄漏", "tea"}]


def test_words_of_other_scripts_are_indexed_again(undistributed_database_url: str, counter: TokenCounter) -> None:
    asyncio.run(fill(undistributed_database_url, counter, "the reports of отчётов", "tea"))
    words = "SELECT unnest(terms)::text FROM lexical"
    found = []
    for move, revision in ((command.downgrade, REVISIONS[REVISIONS.index("0043") - 1]), (command.upgrade, "head")):
        move(configuration(undistributed_database_url), revision)
        with connected(undistributed_database_url) as connection:
            found.append({word for word in connection.execute(text(words)).scalars() if "workspace" not in word})
    # Each word keeps its place in the text.
    assert found == [{word, "(report,{2},{D})", "(tea,{1},{D})"} for word in ("(отчетов,{4},{D})", "(отчет,{4},{D})")]


def test_words_that_were_written_during_their_migration_are_indexed_again(
    undistributed_database_url: str, counter: TokenCounter
) -> None:
    config = configuration(undistributed_database_url)
    asyncio.run(fill(undistributed_database_url, counter, "отчётов"))
    command.downgrade(config, REVISIONS[REVISIONS.index("0043") - 1])
    url = libpq_url(undistributed_database_url)
    with ThreadPoolExecutor() as pool, psycopg.connect(url) as writer, psycopg.connect(url, autocommit=True) as reader:
        writer.execute("CREATE TEMPORARY TABLE written AS SELECT * FROM lexical")
        writer.execute("DELETE FROM lexical")
        writer.commit()
        writer.execute("INSERT INTO lexical SELECT * FROM written")
        migrating = pool.submit(command.upgrade, config, "head")
        while not (migrating.done() or reader.execute(WAITS).fetchone() == (True,)):
            time.sleep(0.01)
        writer.commit()
        migrating.result()
        assert reader.execute("SELECT terms @@ 'отчет' FROM lexical").fetchall() == [(True,)]


async def test_the_state_is_told(empty_database_url: str) -> None:
    database = Database(empty_database_url, pool_size=1)
    assert await current(database) is None
    await asyncio.to_thread(upgrade, empty_database_url)
    assert await current(database) == head() == REVISIONS[-1]
    await database.close()


async def test_the_state_is_told_before_the_roles_own_anything(undistributed_database_url: str) -> None:
    await asyncio.to_thread(command.downgrade, configuration(undistributed_database_url), "0015")
    database = Database(undistributed_database_url, pool_size=1)
    assert await current(database) == "0015"
    await asyncio.to_thread(upgrade, undistributed_database_url)
    assert await current(database) == head()
    await database.close()


async def test_two_that_migrate_at_once_both_succeed(empty_database_url: str) -> None:
    await asyncio.gather(*(asyncio.to_thread(_in_a_process, empty_database_url) for _ in range(3)))
    database = Database(empty_database_url, pool_size=1)
    assert await current(database) == head()
    await database.close()


def _in_a_process(url: str) -> None:
    code = "import sys; from app.db.migrations import upgrade; upgrade(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, url], check=True, capture_output=True)


def test_indexes_that_a_failure_left_half_built_are_built_again(
    undistributed_database_url: str, counter: TokenCounter
) -> None:
    asyncio.run(fill(undistributed_database_url, counter, "one", "two"))
    command.downgrade(configuration(undistributed_database_url), "0003")
    with connected(undistributed_database_url) as connection:
        plain = connection.execution_options(isolation_level="AUTOCOMMIT")
        # Two rows of one workspace: the build fails at its end, and leaves an index that is not valid.
        with pytest.raises(IntegrityError):
            plain.execute(text("CREATE UNIQUE INDEX CONCURRENTLY memories_low_ix ON memories (workspace_id)"))
        plain.execute(text("CREATE INDEX memories_deleted_ix ON memories (workspace_id)"))
    upgrade(undistributed_database_url)
    with connected(undistributed_database_url) as connection:
        assert differences(connection) == []
        invalid = "SELECT count(*) FROM pg_index WHERE NOT indisvalid"
        assert connection.execute(text(invalid)).scalar_one() == 0


def test_going_down_forgets_what_runs_said_earlier_and_no_more(undistributed_database_url: str) -> None:
    row = (
        "INSERT INTO compressions (workspace_id, observation_id, run_id, request, earlier)"
        """ SELECT workspace_id, gen_random_uuid(), 'r', '{"task": "t"}', :earlier FROM workspaces"""
    )
    config = configuration(undistributed_database_url)
    with connected(undistributed_database_url) as connection:
        connection.execute(
            text("INSERT INTO workspaces (name, language, languages) VALUES ('w', 'english', '{english}')")
        )
        for earlier in (True, True, False):
            connection.execute(text(row), {"earlier": earlier})
        connection.commit()
    command.downgrade(config, "0013")
    command.upgrade(config, "head")
    with connected(undistributed_database_url) as connection:
        assert connection.execute(text("SELECT array_agg(earlier) FROM compressions")).scalar_one() == [False]
        with pytest.raises(IntegrityError):
            connection.execute(text(row), {"earlier": False})


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
def test_a_dump_that_was_restored_on_a_server_without_the_roles_is_secured_again(
    undistributed_database_url: str, counter: TokenCounter, tmp_path: Path, options: list[str]
) -> None:
    asyncio.run(fill(undistributed_database_url, counter, "kept"))
    file = str(tmp_path / "dump.sql")
    subprocess.run([binary("pg_dump"), *options, "--file", file, libpq_url(undistributed_database_url)], check=True)
    with without_roles(tmp_path / "data") as url:
        subprocess.run([binary("psql"), "--quiet", "--file", file, url], check=True, capture_output=True)
        assert "priors migrate" in asyncio.run(remedy(url))
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
