"""Row-level security: every table with a workspace, asked as the service's role without one and with the wrong one."""

from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
import pytest_asyncio
from psycopg import sql
from sqlalchemy import make_url

from app.foundation.db.database import Database
from app.foundation.db.migrations import SCHEMA, SCRIPTS
from app.foundation.db.pool import LOGIN_POWERS, libpq_url
from app.foundation.db.session import Session

A, B = UUID(int=1), UUID(int=2)
FILL = {
    "sources": "(workspace_id, source_id, kind, uri) VALUES (%(w)s, %(a)s, 'report', 'a.md')",
    "memories": (
        "(workspace_id, memory_id, kind, title, body, language, tags, tokens, content_hash)"
        " SELECT %(w)s, id, 'note', 'title', 'word', 'simple', '{tag}', 1, id::text::bytea"
        " FROM unnest(ARRAY[%(a)s, %(b)s]::uuid[]) AS id RETURNING 1"
    ),
    "lexical": (
        "(workspace_id, memory_id, terms, weights, length) SELECT %(w)s::bigint, %(a)s, t || array_to_tsvector(ARRAY["
        "'workspace:' || %(w)s]), priors_weights(t, 1, 1.2, 0.4), 1 FROM to_tsvector('simple', 'word') AS t RETURNING 1"
    ),
    "lexeme_statistics": "(workspace_id, lexeme, document_count) VALUES (%(w)s, 'word', 1)",
    "embeddings": (
        "(workspace_id, memory_id, model_id, passage, starts, embedding)"
        " SELECT %(w)s, %(a)s, model_id, 0, 0, '[1,2,3]' FROM embedding_models WHERE name = 'secured' RETURNING 1"
    ),
    "accesses": "(workspace_id, memory_id, access_count) VALUES (%(w)s, %(a)s, 3)",
    "pending_embeddings": "(workspace_id, memory_id) VALUES (%(w)s, %(a)s)",
    "recalls": (
        "(workspace_id, recall_id, purpose, query, parameters, mode, degraded, took_ms)"
        " VALUES (%(w)s, %(a)s, 'search', 'q', '{}', 'hybrid', '[]', 1)"
    ),
    "recall_hits": (
        "(workspace_id, recall_id, rank, memory_id, score, explain) VALUES (%(w)s, %(a)s, 1, %(a)s, 1, '{}')"
    ),
    "effects": "(workspace_id, memory_id, kind, estimate, deviation, low, high, harmful, basis, runs_with,"
    " runs_without, enough, flagged, influence)"
    " VALUES (%(w)s, %(a)s, 'note', -1, 1, -3, 1, 0.8, 'experimental', 30, 3, true, false, 0)",
    "run_sections": "(workspace_id, run_id, recall_id, blocks) VALUES (%(w)s, 'r', %(a)s, '[]')",
    "runs": "(workspace_id, run_id) VALUES (%(w)s, 'r')",
    "observations": (
        "(workspace_id, memory_id, task, task_type, narrative, facts, verdict, compressor)"
        " VALUES (%(w)s, %(a)s, 'task', '', '', '{}', '', 'given')"
    ),
    "compressions": "(workspace_id, observation_id, request) VALUES (%(w)s, %(a)s, '{}')",
    "feedback": "(workspace_id, feedback_id, memory_id, rating) VALUES (%(w)s, %(a)s, %(a)s, 1)",
    "ingestions": "(workspace_id, ingestion_id, seconds, counts, outcomes) VALUES (%(w)s, %(a)s, 1, '{}', '[]')",
    "refusals": "(workspace_id, reason, count) VALUES (%(w)s, 'echo', 1)",
    "maps": (
        "(workspace_id, kind, node_limit, clusters, memory_ids, xs, ys, members, computed_at)"
        " VALUES (%(w)s, '', 1, '[]', '{}', '{}', '{}', '{}', now())"
    ),
    "judgements": (
        "(workspace_id, judgement_id, run_id, pointer, case_name, case_title, version, verdict, grade, judge, basis,"
        " summary, lists_issues) VALUES (%(w)s, %(a)s, 'run', '', 'c', 'c', 'v1', '', '', '', 'judged', '', true)"
    ),
    "issues": (
        "(workspace_id, issue_id, case_name, title, severity, status, versions, mended_in)"
        " VALUES (%(w)s, %(a)s, 'c', 't', 'P1', 'open', '{v1}', '')"
    ),
    "issue_occurrences": (
        "(workspace_id, judgement_id, place, version, status, issue_id, severity)"
        " VALUES (%(w)s, %(a)s, 0, 'v1', 'open', %(a)s, 'P1')"
    ),
    "sessions": "(workspace_id, source_id, format) VALUES (%(w)s, %(a)s, 'messages')",
    "messages": "(workspace_id, memory_id, role, digest) VALUES (%(w)s, %(a)s, 'user', '')",
    "artifacts": "(workspace_id, artifact_id, path) VALUES (%(w)s, %(a)s, 'app/a.py')",
    "session_acts": "(workspace_id, act, source_id, places) VALUES (%(w)s, 'run pytest', %(a)s, '{0}')",
    "artifact_touches": ("(workspace_id, artifact_id, memory_id, action) VALUES (%(w)s, %(a)s, %(a)s, 'changed')"),
    "links": "(workspace_id, from_id, to_id, relation) VALUES (%(w)s, %(a)s, %(b)s, 'mentions')",
    "titles": "(workspace_id, memory_id, key) VALUES (%(w)s, %(a)s, 'title')",
    "pending_links": "(workspace_id, memory_id, step) VALUES (%(w)s, %(a)s, 'words')",
    "cues": (
        "(workspace_id, memory_id, cue_kind, confidence, consequence, scope, quote, trust, origin, state, action_types,"
        " files, seen_on, model, valid_from, revision) VALUES (%(w)s, %(a)s, 'correction', 1, 1, 'project', '',"
        " 'person', 'given', 'active', '{}', '{}', '{}', '', now(), 1)"
    ),
    "cue_evidence": "(workspace_id, memory_id, place, session, quote) VALUES (%(w)s, %(a)s, 0, '', '')",
    "cue_revisions": "(workspace_id, revision) VALUES (%(w)s, 1)",
    "activations": (
        "(workspace_id, activation_id, plan, files, budget_tokens, tokens, degraded, took_ms)"
        " VALUES (%(w)s, %(a)s, 'p', '{}', 400, 1, '', 1)"
    ),
    "activation_cues": (
        "(workspace_id, activation_id, rank, memory_id, score, explain) VALUES (%(w)s, %(a)s, 1, %(a)s, 1, '{}')"
    ),
    "contexts": (
        "(workspace_id, context_id, model, format, budget, tokens, prefix, document, took_ms)"
        " VALUES (%(w)s, %(a)s, '', 'openai', 1, 1, '', '{}', 1)"
    ),
    "audit": (
        "(workspace_id, entry_id, who, operation, request_id, for_user, action, object, count, ids)"
        " VALUES (%(w)s, %(a)s, 'cli', '', '', '', 'add', 'memory', 1, '{}')"
    ),
    "cue_proposals": (
        "(workspace_id, proposal_id, change, key, cue_ids, relation, reason)"
        " VALUES (%(w)s, %(a)s, 'merge', 'k', '{}', '', '')"
    ),
}
"""A row for each table, in an order that foreign keys allow."""
TABLES = ["workspaces", *FILL]
APPENDED = "audit"
"""The service's role may neither change nor delete any row of it (tests/operations/test_audit.py)."""
REFUSED = "row-level security|permission denied"
MOVE_REFUSED = (psycopg.errors.InsufficientPrivilege, psycopg.errors.FeatureNotSupported)
"""The refusals of a row's move to another workspace; the second is Citus's, of any such statement."""


class Filled:
    """A database of its own with the same rows in two workspaces."""

    def __init__(self, sessions: Database, own: int, other: int, partition: str) -> None:
        self.sessions, self.own, self.other, self.partition = sessions, own, other, partition

    def name(self, table: str) -> str:
        return self.partition if table == "partition" else table


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def filled(database_url: str) -> AsyncIterator[Filled]:
    sessions = Database(database_url, pool_size=2)
    async with sessions.across() as session:
        model = await session.value(
            "INSERT INTO embedding_models (name, dimension) VALUES ('secured', 3) RETURNING model_id"
        )
        partition = f"embeddings_{model}"
        await session.execute(f"CREATE TABLE {partition} PARTITION OF embeddings FOR VALUES IN ({model})")
        await session.value("SELECT priors_secure(%(table)s::regclass)", {"table": partition})
    made = []
    for _ in range(2):
        async with sessions.session(0, transaction=False) as session:
            row = await session.one("SELECT * FROM priors_make_workspace(%(name)s, 'simple')", {"name": uuid4().hex})
        made.append(row.workspace_id)
        async with sessions.session(row.workspace_id) as session:
            for table, rest in FILL.items():
                assert await session.execute(f"INSERT INTO {table} {rest}", {"w": row.workspace_id, "a": A, "b": B})
    yield Filled(sessions, made[0], made[1], partition)
    async with sessions.across() as session:
        await session.execute(f"DROP TABLE {partition}")
        await session.execute("DELETE FROM embedding_models WHERE name = 'secured'")
    await sessions.close()


@pytest.fixture
def stranger(filled: Filled) -> Iterator[psycopg.Connection]:
    """The service's role, outside of any session: nobody has said which workspace."""
    with psycopg.connect(libpq_url(filled.sessions.url), autocommit=True) as connection:
        connection.execute("SET ROLE priors_service")
        yield connection


def test_every_table_with_a_workspace_is_asked() -> None:
    assert {table.name for table in SCHEMA.values() if table.of_workspace} == set(TABLES)


@pytest.mark.parametrize("table", [*TABLES, "partition"])
async def test_a_statement_that_forgets_its_workspace_finds_its_own_rows_alone(filled: Filled, table: str) -> None:
    async with filled.sessions.session(filled.own) as session:
        found = await session.column(f"SELECT DISTINCT workspace_id FROM {filled.name(table)}")
    assert found == [filled.own]


@pytest.mark.parametrize("table", [*TABLES, "partition"])
async def test_a_statement_that_names_another_workspace_finds_and_writes_nothing(filled: Filled, table: str) -> None:
    name, given = filled.name(table), {"other": filled.other}
    async with filled.sessions.session(filled.own, transaction=False) as session:
        assert await session.column(f"SELECT 1 FROM {name} WHERE workspace_id = %(other)s", given) == []
        update = f"UPDATE {name} SET workspace_id = workspace_id WHERE workspace_id = %(other)s"
        if table not in {"workspaces", APPENDED}:
            assert await _moved(session, update, given) == 0
        if table != APPENDED:
            assert await session.execute(f"DELETE FROM {name} WHERE workspace_id = %(other)s", given) == 0
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match=REFUSED):
            await session.execute(*_insertion(table, filled.partition, filled.other))


@pytest.mark.parametrize("table", [*TABLES, "partition"])
@pytest.mark.parametrize("setting", [None, "", "0"])
def test_without_a_workspace_nothing_is_found_and_nothing_written(
    filled: Filled, stranger: psycopg.Connection, table: str, setting: str | None
) -> None:
    if setting is not None:
        stranger.execute("SELECT set_config('priors.workspace_id', %s, false)", [setting])
    name = filled.name(table)
    assert stranger.execute(f"SELECT count(*) FROM {name}".encode()).fetchone() == (0,)
    if table != APPENDED:
        assert stranger.execute(f"DELETE FROM {name}".encode()).rowcount == 0
    statement, given = _insertion(table, filled.partition, filled.own)
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match=REFUSED):
        stranger.execute(statement.encode(), given)


async def _moved(session: Session, update: str, given: dict[str, Any]) -> int:
    """Returns the number of rows that were moved to another workspace; Citus refuses every such statement."""
    try:
        return await session.execute(update, given)
    except psycopg.errors.FeatureNotSupported:
        return 0


def _insertion(table: str, partition: str, workspace_id: int) -> tuple[str, dict[str, Any]]:
    given = {"w": workspace_id, "a": uuid4(), "b": uuid4()}
    if table == "workspaces":
        return "INSERT INTO workspaces (name, language, languages) VALUES (%(a)s, 'simple', '{}')", given
    if table == "partition":
        model = partition.rpartition("_")[2]
        return f"INSERT INTO {partition} VALUES (%(w)s, %(a)s, {model}, '[1,2,3]')", given
    return f"INSERT INTO {table} {FILL[table]}", given


async def test_a_workspace_cannot_be_changed_into_another(filled: Filled) -> None:
    async with filled.sessions.session(filled.own, transaction=False) as session:
        with pytest.raises(MOVE_REFUSED, match=f"{REFUSED}|modifying the partition value"):
            await session.execute("UPDATE refusals SET workspace_id = %(other)s", {"other": filled.other})


async def test_across_sees_all(filled: Filled) -> None:
    async with filled.sessions.across() as session:
        for table in FILL:
            found = set(await session.column(f"SELECT workspace_id FROM {table}"))
            assert {filled.own, filled.other} <= found


FUNCTIONS = {
    "priors_lexical": "SELECT memory_id FROM priors_lexical('word', ('{' || priors_dimension('word')"
    " || ':1}/536870912')::sparsevec, 10)",
    "priors_matching": "SELECT priors_matching('word', 10)",
    "priors_tagged": "SELECT priors_tagged('{tag}', NULL)",
    "priors_of_task": "SELECT priors_of_task('task')",
}


@pytest.mark.parametrize("function", FUNCTIONS)
async def test_a_function_of_the_owner_finds_the_sessions_workspace_alone(
    filled: Filled, stranger: psycopg.Connection, function: str
) -> None:
    expected = {"priors_tagged": {A, B}}.get(function, {A})
    async with filled.sessions.session(filled.own, transaction=False) as session:
        found = await session.column(FUNCTIONS[function])
    assert set(found) == expected
    assert len(found) == len(expected)
    assert stranger.execute(FUNCTIONS[function].encode()).fetchall() == []


@pytest.mark.parametrize("function", FUNCTIONS)
async def test_a_function_that_looks_up_an_index_runs_as_the_owner(filled: Filled, function: str) -> None:
    async with filled.sessions.across() as session:
        assert await session.value("SELECT prosecdef FROM pg_proc WHERE proname = %(name)s", {"name": function})


async def test_a_workspace_is_found_by_its_whole_name_alone(filled: Filled) -> None:
    async with filled.sessions.session(filled.own, transaction=False) as session:
        name = await session.value("SELECT name FROM workspaces")
    async with filled.sessions.session(0, transaction=False) as session:
        found = await session.one("SELECT * FROM priors_workspace(%(name)s)", {"name": name})
        assert found.workspace_id == filled.own
        again = await session.one("SELECT * FROM priors_make_workspace(%(name)s, 'german')", {"name": name})
        assert (again.workspace_id, again.language) == (filled.own, "simple")
        assert await session.row("SELECT * FROM priors_workspace('%%')") is None


def test_the_service_owns_nothing_and_cannot_lift_the_policies(stranger: psycopg.Connection) -> None:
    owned = "SELECT count(*) FROM pg_shdepend WHERE refobjid = 'priors_service'::regrole AND deptype = 'o'"
    assert stranger.execute(owned).fetchone() == (0,)
    for statement in (
        "ALTER TABLE memories DISABLE ROW LEVEL SECURITY",
        "DROP POLICY own_workspace ON memories",
        "CREATE TABLE mine (x int)",
        "UPDATE alembic_version SET version_num = '0001'",
        "TRUNCATE memories",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            stranger.execute(statement)


def test_every_table_in_the_catalogue_is_under_its_policies(stranger: psycopg.Connection) -> None:
    bare = """
        SELECT c.oid::regclass::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace AND a.attname = 'workspace_id'
            AND NOT (c.relrowsecurity AND c.relforcerowsecurity AND c.relowner = 'priors_owner'::regrole
            AND (SELECT array_agg(polname ORDER BY polname) FROM pg_policy
                WHERE polrelid = c.oid AND polname <> 'own_user') = '{all_workspaces,own_workspace}'
            AND EXISTS (SELECT FROM pg_attribute WHERE attrelid = c.oid AND attname = 'user_id' AND NOT attisdropped)
                = EXISTS (SELECT FROM pg_policy WHERE polrelid = c.oid AND polname = 'own_user' AND NOT polpermissive))
    """
    # Tests of the service as it was before still make partitions of their own.
    assert [name for (name,) in stranger.execute(bare) if not name.startswith("embeddings_")] == []


def test_functions_of_the_owner_have_a_fixed_path_and_are_not_everybodys(stranger: psycopg.Connection) -> None:
    loose = """
        SELECT proname FROM pg_proc WHERE prosecdef AND pronamespace = 'public'::regnamespace AND (
            proowner <> 'priors_owner'::regrole OR proconfig IS NULL OR proconfig[1] NOT LIKE 'search_path=%pg_temp'
            OR EXISTS (SELECT FROM aclexplode(proacl) WHERE grantee = 0)
        )
    """
    assert stranger.execute(loose).fetchall() == []


async def test_a_partition_that_is_not_secured_is_out_of_reach(filled: Filled) -> None:
    name = f"embeddings_bare_{uuid4().hex[:8]}"
    async with filled.sessions.across() as session:
        await session.execute(f"CREATE TABLE {name} PARTITION OF embeddings FOR VALUES IN (32000)")
    try:
        async with filled.sessions.session(filled.own, transaction=False) as session:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                await session.rows(f"SELECT * FROM {name}")
    finally:
        async with filled.sessions.across() as session:
            await session.execute(f"DROP TABLE {name}")


async def test_the_powers_of_the_login_are_told(filled: Filled) -> None:
    async with filled.sessions.session(0, transaction=False) as session:
        powers = await session.one(LOGIN_POWERS)
        login = await session.value("SELECT session_user::text")
    assert (powers.role, powers.login) == ("priors_service", login)


def test_a_login_that_may_not_make_roles_is_told_what_to_run(database_url: str) -> None:
    roles = (SCRIPTS / "security.sql").read_text(encoding="utf-8").partition("END $$;\n")[0].encode() + b"END $$"
    login = f"plain_{uuid4().hex[:8]}"
    url = make_url(database_url).render_as_string(hide_password=False)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(login)))
        try:
            connection.execute(sql.SQL("SET SESSION AUTHORIZATION {}").format(sql.Identifier(login)))
            with pytest.raises(psycopg.errors.InsufficientPrivilege) as refused:
                connection.execute(roles)
            connection.execute("RESET SESSION AUTHORIZATION")
            command = str(refused.value).splitlines()[0].partition("must run: ")[2]
            connection.execute(command.encode())
            connection.execute(sql.SQL("SET SESSION AUTHORIZATION {}").format(sql.Identifier(login)))
            connection.execute(roles)
        finally:
            connection.execute("RESET SESSION AUTHORIZATION")
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(login)))
