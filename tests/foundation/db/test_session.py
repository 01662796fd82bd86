"""Sessions: what they see, what they leave behind, and what becomes of a lost connection, with a real Postgres."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
from uuid import uuid4

import numpy as np
import psycopg
import pytest
import pytest_asyncio
from sqlalchemy import make_url

from app.errors import ConfigurationError, DatabaseUnavailable, StorageFull
from app.foundation.db import pool as pool_module
from app.foundation.db import wire as wire_module
from app.foundation.db.database import Database, again_after_deadlock
from app.foundation.db.migrations import upgrade
from app.foundation.db.pool import SILENCE, libpq_url
from app.foundation.db.session import BEGIN, COMMIT, Session
from app.foundation.db.wire import HALFVEC_TYPE, UuidArray, compile_statement, ids_of, vectors_of

STATE = """
SELECT pg_backend_pid() AS backend, current_user AS role,
    coalesce(current_setting('priors.workspace_id', true), '') AS workspace
"""
END = "SELECT pg_terminate_backend(%(backend)s::int, 5000)"
WAITING = "SELECT queueing_lock FROM procrastinate_jobs WHERE queueing_lock LIKE %(prefix)s || '%%' ORDER BY id"


@dataclass(frozen=True, slots=True)
class Tenant:
    """A workspace as a session takes it."""

    workspace_id: int
    user: str = ""
    sees: str = ""


async def made(sessions: Database) -> Tenant:
    async with sessions.session(0) as session:
        row = await session.one("SELECT * FROM priors_make_workspace(%(name)s, 'english')", {"name": uuid4().hex})
    return Tenant(row.workspace_id)


@pytest_asyncio.fixture
async def single(database_url: str) -> AsyncIterator[Database]:
    """A pool of one connection: what one session leaves behind, the next one finds."""
    sessions = Database(database_url, pool_size=1)
    yield sessions
    await sessions.close()


@pytest_asyncio.fixture
async def sessions(database_url: str) -> AsyncIterator[Database]:
    sessions = Database(database_url, pool_size=4)
    yield sessions
    await sessions.close()


async def test_rows_come_in_the_forms_that_are_asked_for(sessions: Database) -> None:
    two = "SELECT number, number * 2 AS double FROM generate_series(1, %(last)s::int) AS number"
    async with sessions.session(0) as session:
        assert [row.double for row in await session.rows(two, {"last": 2})] == [2, 4]
        assert await session.tuples(two, {"last": 2}) == [(1, 2), (2, 4)]
        assert await session.column(two, {"last": 2}) == [1, 2]
        assert await session.value(two, {"last": 1}) == 1
        assert await session.value(two, {"last": 0}) is None
        assert await session.row(two, {"last": 0}) is None
        assert (await session.one(two, {"last": 1})).double == 2
        assert await session.value("SELECT 7 %% 4") == 3
        for wrong in (0, 2):
            with pytest.raises(LookupError):
                await session.one(two, {"last": wrong})


async def test_a_session_gives_the_workspace_itself(sessions: Database) -> None:
    tenant = await made(sessions)
    async with sessions.session(tenant) as session:
        assert session.workspace_id == tenant.workspace_id
        assert await session.value("SELECT %(workspace_id)s") == tenant.workspace_id
        assert await session.column("SELECT workspace_id FROM workspaces") == [tenant.workspace_id]
        with pytest.raises(psycopg.ProgrammingError, match="itself"):
            await session.value("SELECT %(workspace_id)s", {"workspace_id": 1})
    async with sessions.across() as session:
        with pytest.raises(RuntimeError, match="all workspaces"):
            _ = session.workspace_id
        with pytest.raises(psycopg.ProgrammingError, match="no value for"):
            await session.value("SELECT %(workspace_id)s")
        assert await session.value("SELECT count(*) > 0 FROM workspaces")


def test_only_one_style_of_parameters_is_taken() -> None:
    assert compile_statement("SELECT %(a)s, %(b)s, %(a)s, 5 %% 2") == (b"SELECT $1, $2, $1, 5 % 2", ("a", "b"))
    for wrong in ("SELECT %s", "SELECT 5 % 2", "SELECT %(a)b"):
        with pytest.raises(psycopg.ProgrammingError):
            compile_statement(wrong)


async def test_a_session_commits_and_an_exception_undoes_it(sessions: Database) -> None:
    tenant = await made(sessions)
    change = "UPDATE workspaces SET language = %(language)s WHERE workspace_id = %(workspace_id)s"

    async def fail() -> None:
        async with sessions.session(tenant) as session:
            await session.execute(change, {"language": "german"})
            raise ZeroDivisionError

    async with sessions.session(tenant) as session:
        assert await session.execute(change, {"language": "french"}) == 1
    with pytest.raises(ZeroDivisionError):
        await fail()
    async with sessions.session(tenant, transaction=False) as session:
        assert await session.value("SELECT language FROM workspaces") == "french"
        for language in ("greek", "irish"):
            await session.execute(change, {"language": language})
        assert await session.value("SELECT language FROM workspaces") == "irish"


@pytest.mark.parametrize("transaction", [True, False])
async def test_statements_that_wait_for_no_disk_are_kept_all_or_none(sessions: Database, *, transaction: bool) -> None:
    tenant = await made(sessions)
    add = """
    INSERT INTO run_sections (workspace_id, run_id, recall_id, blocks)
    VALUES (%(workspace_id)s, %(run)s, %(recall)s::uuid, '[]')
    """
    waits_for_none = "SELECT WHERE current_setting('synchronous_commit') = 'off'"
    count = "SELECT count(*) FROM run_sections WHERE workspace_id = %(workspace_id)s"

    async def lazily(run: str, *statements: str) -> list[int]:
        async with sessions.session(tenant, transaction=transaction) as session:
            return await session.execute_lazily(statements, {"run": run, "recall": uuid4()})

    assert await lazily("kept", add, waits_for_none) == [1, 1]
    with pytest.raises(psycopg.errors.DivisionByZero):
        await lazily("undone", add, "SELECT 1 / 0")
    async with sessions.session(tenant, transaction=False) as session:
        assert await session.value(count) == 1
        assert await session.execute(waits_for_none) == 0


async def test_an_error_that_is_swallowed_is_no_commit(sessions: Database) -> None:
    async def swallow() -> None:
        async with sessions.session(0) as session:
            with pytest.raises(psycopg.errors.DivisionByZero):
                await session.value("SELECT 1 / 0")

    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        await swallow()


def opened_as(sessions: Database, kind: str) -> AbstractAsyncContextManager[Session]:
    if kind == "statements":
        return sessions.session(5, transaction=False)
    return sessions.across(transaction=kind == "across") if kind.startswith("across") else sessions.session(5)


async def fail_in(session: Session) -> None:
    await session.value("SELECT 1 / 0")


async def be_cancelled_in(session: Session) -> None:
    async with asyncio.timeout(0.2):
        await session.value("SELECT pg_sleep(30)")


async def raise_in(session: Session) -> None:
    await session.value("SELECT 1")
    raise ZeroDivisionError


@pytest.mark.parametrize("end", [fail_in, be_cancelled_in])
async def test_a_statement_of_its_own_that_fails_leaves_the_next_alone(
    sessions: Database, end: Callable[[Session], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a cluster, and in the form of its statements, each of which has BEGIN and COMMIT of its own."""
    async with sessions.session(await made(sessions), transaction=False) as session:
        if not session._suffix:
            monkeypatch.setattr(session, "_prefix", [BEGIN, *session._prefix])
            monkeypatch.setattr(session, "_suffix", [COMMIT])
        before = await session.one(STATE)
        with pytest.raises((psycopg.errors.DivisionByZero, TimeoutError)):
            await end(session)
        assert await session.one(STATE) == before


@pytest.mark.parametrize("kind", ["session", "statements", "across", "across without a transaction"])
@pytest.mark.parametrize("end", [fail_in, be_cancelled_in, raise_in])
async def test_a_session_leaves_no_role_and_no_workspace_behind(
    single: Database, end: Callable[[Session], Awaitable[None]], kind: str
) -> None:
    opened = partial(opened_as, single, kind)
    async with opened() as session:
        during = await session.one(STATE)
    assert (during.role, during.workspace) == (("priors_owner", "") if "across" in kind else ("priors_service", "5"))

    async def leave() -> None:
        async with opened() as session:
            await end(session)

    with pytest.raises((psycopg.errors.DivisionByZero, TimeoutError, ZeroDivisionError)):
        await leave()
    async with single.across(transaction=False) as session:
        await session.execute("SET ROLE priors_service")
        after = await session.one(STATE)
    assert (after.backend, after.role, after.workspace) == (during.backend, "priors_service", "")
    async with single.session(6, transaction=False) as session:
        assert (await session.one(STATE)) == (during.backend, "priors_service", "6")


async def test_a_session_that_is_cancelled_twice_gives_its_connection_up(single: Database) -> None:
    async def sleep() -> None:
        async with single.session(5) as session:
            await session.value("SELECT pg_sleep(30)")

    for _ in range(5):
        task = asyncio.create_task(sleep())
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with single.session(6) as session:
            state = await session.one(STATE)
            assert (state.role, state.workspace) == ("priors_service", "6")


async def test_jobs_are_added_last_once_and_in_the_order_of_their_locks(sessions: Database) -> None:
    prefix = uuid4().hex

    async def add(order: str) -> None:
        async with sessions.session(0) as session:
            for lock in order:
                await session.enqueue("compress", lock=f"{prefix} {lock}", workspace_id=1, observation_id="x")
            assert await session.column(WAITING, {"prefix": prefix}) == []

    async def fail() -> None:
        async with sessions.session(0) as session:
            await session.enqueue("compress", lock=f"{prefix} z")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    await add("cab")
    async with sessions.across() as session:
        assert await session.column(WAITING, {"prefix": prefix}) == [f"{prefix} {lock}" for lock in "abc"]


async def test_two_that_ask_for_the_same_jobs_in_other_orders_do_not_deadlock(sessions: Database) -> None:
    prefix = uuid4().hex

    async def add(order: str) -> None:
        async with sessions.session(0) as session:
            for lock in order:
                await session.enqueue("embed_waiting", lock=f"{prefix} {lock}")

    for _ in range(10):
        await asyncio.gather(add("abcdef"), add("fedcba"), add("cfaebd"))
    async with sessions.session(0, transaction=False) as session:
        await session.enqueue("embed_waiting", lock=f"{prefix} g")
        assert len(await session.column(WAITING, {"prefix": prefix})) == 7


async def lose(session: Session, sessions: Database) -> None:
    """Have the server end a session's connection."""
    end_backend(sessions.url, (await session.one(STATE)).backend)


def end_backend(url: str, backend: int) -> None:
    with psycopg.connect(libpq_url(url), autocommit=True) as superuser:
        superuser.execute(END, {"backend": backend})


@pytest.mark.parametrize("kind", ["session", "statements", "across", "across without a transaction", "enqueue"])
async def test_a_lost_connection_says_so_and_the_next_is_another(sessions: Database, kind: str) -> None:
    opened = partial(opened_as, sessions, kind)

    async def use() -> None:
        async with opened() as session:
            await lose(session, sessions)
            if kind == "enqueue":
                await session.enqueue("embed_waiting", lock="lost")
            else:
                await session.value("SELECT 1")

    with pytest.raises(DatabaseUnavailable, match="the database does not answer"):
        await use()
    async with opened() as session:
        assert await session.value("SELECT 1") == 1
        assert await session.column(WAITING, {"prefix": "lost"}) == []


async def test_an_idle_connection_that_was_ended_is_noticed(single: Database) -> None:
    async with single.session(0, transaction=False) as session:
        backend = (await session.one(STATE)).backend
    end_backend(single.url, backend)
    async with single.session(0, transaction=False) as session:
        assert (await session.one(STATE)).backend != backend


async def test_a_full_pool_says_so(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "POOL_TIMEOUT_SECONDS", 0.1)
    full = Database(database_url, pool_size=1)
    async with full.session(0):
        with pytest.raises(DatabaseUnavailable, match="PRIORS_POOL_SIZE"):
            async with full.session(0):
                pass
    await full.close()


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("postgresql://nobody@127.0.0.1:1/none", DatabaseUnavailable),
        ("postgresql://nobody@/none?nonsense=1", ConfigurationError),
    ],
)
async def test_a_database_that_cannot_be_reached_says_so(url: str, error: type[Exception]) -> None:
    sessions = Database(url, pool_size=1)
    with pytest.raises(error):
        async with sessions.session(0):
            pass
    await sessions.close()


async def test_a_database_that_is_not_migrated_answers_and_takes_the_role_later(empty_database_url: str) -> None:
    sessions = Database(empty_database_url, pool_size=1)
    async with sessions.session(0, transaction=False) as session:
        before = await session.one(STATE)
    async with sessions.across() as session:
        assert await session.value("SELECT to_regclass('memories')") is None
    await asyncio.to_thread(upgrade, empty_database_url)
    async with sessions.session(0) as session:
        after = await session.one(STATE)
    assert after.backend == before.backend
    assert after.role == "priors_service"
    await sessions.close()


@pytest.mark.parametrize("makes_room", [True, False])
async def test_what_comes_again_is_prepared_and_not_without_end(
    single: Database,
    monkeypatch: pytest.MonkeyPatch,
    makes_room: bool,  # noqa: FBT001 - a parameter
) -> None:
    monkeypatch.setattr(wire_module, "PREPARED_AT_MOST", 5)
    monkeypatch.setattr(wire_module, "MAKES_ROOM", makes_room)
    if not makes_room:
        monkeypatch.setattr(wire_module.Wire, "_closings", lambda _wire: [])
    count = "SELECT count(*) FROM pg_prepared_statements"
    async with single.session(0, transaction=False) as session:
        for _ in range(4):
            for number in range(20):
                assert await session.value(f"SELECT {number}") == number
        assert 1 <= await session.value(count) <= 5
        for number in range(10):
            assert await session.value("SELECT %(number)s::int", {"number": number}) == number


PREPARED = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%%' || %(part)s || '%%'"


async def test_a_statement_that_fails_or_is_cancelled_is_prepared_once(single: Database) -> None:
    async def divide(part: str) -> None:
        async with single.session(0, transaction=False) as session:
            await session.value(f"SELECT %(by)s::int AS {part}, 1 / %(by)s::int", {"by": 0})

    async def sleep(part: str) -> None:
        async with single.session(0, transaction=False) as session, asyncio.timeout(0.1):
            await session.value(f"SELECT %(by)s::int AS {part}, pg_sleep(30)", {"by": 0})

    for fail in (divide, sleep):
        part = f"part_{uuid4().hex}"
        for _ in range(8):
            with pytest.raises((psycopg.errors.DivisionByZero, TimeoutError)):
                await fail(part)
        async with single.session(0, transaction=False) as session:
            assert await session.value(PREPARED, {"part": part}) == 1


async def test_room_is_made_in_a_failed_transaction(single: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_module, "PREPARED_AT_MOST", 0)
    backends = set()

    async def fail() -> None:
        async with single.session(0) as session:
            backends.add((await session.one(STATE)).backend)
            await fail_in(session)

    for _ in range(6):
        with pytest.raises(psycopg.errors.DivisionByZero):
            await fail()
    assert len(backends) == 1


async def test_room_is_made_beside_what_must_be_no_transaction(
    own_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire_module, "PREPARED_AT_MOST", 0)
    sessions = Database(own_database_url, pool_size=1)
    async with sessions.across(transaction=False) as session:
        for _ in range(6):
            assert await session.value("SELECT 1") == 1
            await session.execute("CREATE INDEX CONCURRENTLY made_often ON runs (workspace_id)")
            await session.execute("DROP INDEX CONCURRENTLY made_often")
    await sessions.close()


async def test_a_cancelled_task_keeps_no_advisory_lock(single: Database, sessions: Database) -> None:
    lock = "SELECT pg_try_advisory_lock(7, 7)"

    async def hold() -> None:
        async with single.across(transaction=False) as session:
            assert await session.value(lock)
            await session.value("SELECT pg_sleep(30)")

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await hold()
    async with sessions.across(transaction=False) as other:
        assert await other.value(lock)


async def test_arrays_travel_in_binary(sessions: Database) -> None:
    ids = [uuid4() for _ in range(3)]
    matrix = np.array([[1.5, -2, 0.25], [0, 1, 2]], np.float32)
    async with sessions.session(0) as session:
        (row,) = await session.rows("SELECT %(ids)s::uuid[] AS ids", {"ids": ids}, binary=True)
        assert row.ids == ids_of(ids)
        assert isinstance(row.ids, UuidArray)
        assert await session.value("SELECT %(ids)s", {"ids": row.ids}) == ids
        assert await session.value("SELECT %(ids)s", {"ids": ids_of([])}) == []
        vectors = vectors_of(matrix, await session.value(HALFVEC_TYPE))
        assert await session.value("SELECT (%(v)s::halfvec[])::text[]", {"v": vectors}) == ["[1.5,-2,0.25]", "[0,1,2]"]


async def test_a_deadlock_is_tried_again(sessions: Database) -> None:
    attempts = 0

    async def attempt() -> int:
        nonlocal attempts
        attempts += 1
        async with sessions.session(0) as session:
            if attempts < 3:
                await session.execute("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40P01'; END $$")
            return attempts

    assert await again_after_deadlock(attempt) == 3


@pytest.mark.parametrize(
    ("message", "state"),
    [
        ("connection to the remote node failed", "08006"),
        ("failure on connection marked as essential", "XX000"),
        ("terminating connection due to unexpected postmaster exit", "XX000"),
        ("server closed the connection unexpectedly", "XX000"),
        ("could not receive data from server: Connection reset by peer", "XX000"),
        ("could not commit transaction for shard 102046 on at least one active node", "XX000"),
    ],
)
async def test_a_node_that_is_away_is_a_database_that_does_not_answer(
    sessions: Database, message: str, state: str
) -> None:
    """As Citus tells it, of a node that it cannot reach; the connection itself is well."""
    away = f"DO $$ BEGIN RAISE EXCEPTION '{message}' USING ERRCODE = '{state}'; END $$"
    for transaction in (True, False):
        with pytest.raises(DatabaseUnavailable, match=f"the database does not answer: {message}"):
            async with sessions.session(0, transaction=transaction) as session:
                await session.execute(away)
        async with sessions.session(0) as session:
            assert await session.value("SELECT 1") == 1


def test_a_silent_server_is_given_up_after_the_time_that_the_url_says() -> None:
    with_defaults = dict(make_url(libpq_url("postgresql://priors@db.example/priors")).query)
    assert with_defaults == SILENCE
    own = make_url(libpq_url("postgresql://priors@db.example/priors?tcp_user_timeout=9000")).query
    assert own == {**SILENCE, "tcp_user_timeout": "9000"}


IN_ENGLISH = f"could not write to file: {pool_module.READ_ONLY_DISK}"
IN_GERMAN = "konnte nicht in Datei schreiben: Das Dateisystem ist nur lesbar"


@pytest.mark.parametrize("user", ["", "ann"])
@pytest.mark.parametrize(
    ("state", "message"),
    [("insufficient_privilege", IN_ENGLISH), ("insufficient_privilege", IN_GERMAN), ("internal_error", IN_ENGLISH)],
)
async def test_a_read_only_disk_is_no_missing_privilege(
    single: Database, user: str, state: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Postgres reports a file on such a disk with the SQLSTATE of a missing privilege, in the server's language."""
    if message == IN_GERMAN:
        # The source of what RAISE raises, in place of those that write files.
        monkeypatch.setattr(pool_module, "OWN_FILES", {"pl_exec.c"})
    tenant = replace(await made(single), user=user, sees=user)
    fail = f"DO $$ BEGIN RAISE {state} USING message = '{message}'; END $$"

    with pytest.raises(StorageFull, match=f"the disk of the database is read-only: {message}"):
        async with single.session(tenant) as session:
            await session.execute(fail)

    assert "read-only" in single.pool.full
    assert await single.lack_of_room() == ""
