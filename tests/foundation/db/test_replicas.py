"""Readers go to a replica that has what they must see, and to the primary where none has."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from math import inf
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import psycopg
import pytest
import pytest_asyncio
from psycopg.pq.abc import PGresult
from sqlalchemy import make_url

from app.errors import ConfigurationError, DatabaseUnavailable
from app.foundation.db.database import Database
from app.foundation.db.migrations import upgrade
from app.foundation.db.pool import SILENCE, libpq_url
from app.foundation.db.replicas import NEW, PRIMARY, REPLICA, Seen, _caught_up, read_from_primary, seeing
from app.foundation.db.session import COMMIT, POSITION, WROTE
from app.foundation.db.wire import Command, Wire
from app.foundation.postgres.cluster import DataDirectory
from app.foundation.postgres.embedded import EmbeddedPostgres
from app.intake.runs.feedback.service import Ratings
from app.interfaces.worker.worker import procrastinate_app
from app.settings import from_environment
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from tests.conftest import serving, workspace_in
from tests.fakes.standby import Standby
from tests.foundation.db.test_row_security import FILL, A, B

ON_A_REPLICA = "SELECT pg_is_in_recovery()"


@pytest.fixture(scope="module")
def primary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EmbeddedPostgres, str, Path]]:
    """A server of its own, migrated, that replicas may copy: its superuser's URL, and its folder."""
    folder = tmp_path_factory.mktemp("primary")
    cluster = DataDirectory(folder / "postgres")
    cluster.ensure()
    cluster.write({"postgresql.auto.conf": "fsync = off\n"})
    with EmbeddedPostgres(folder) as server:
        url = server.start()
        upgrade(url)
        yield server, url, cluster.folder


@pytest.fixture(scope="module")
def standby(primary: tuple[EmbeddedPostgres, str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standby]:
    """A replica of it, running."""
    _, url, folder = primary
    with Standby(folder, url, tmp_path_factory.mktemp("replica") / "postgres") as found:
        yield found


@pytest_asyncio.fixture
async def connected(primary: tuple[EmbeddedPostgres, str, Path], standby: Standby) -> AsyncIterator[Database]:
    """The connections of one process to both; its readers go to the replica already."""
    server, url, _ = primary
    database = Database(server.service_url, admin_url=url, pool_size=4, replica_urls=[standby.url()])
    await until(database, serves=True)
    yield database
    await database.close()


async def until(database: Database, *, serves: bool) -> str:
    """Waits until the replica serves, or no longer does; returns the reason."""
    while True:
        await on_a_replica(database, 0)
        (state,) = database.replicas()
        if state.serving == serves:
            return state.reason
        await asyncio.sleep(0.05)


async def on_a_replica(database: Database, workspace: Workspace | int) -> bool:
    async with database.session(workspace, reading=True) as session:
        return bool(await session.value(ON_A_REPLICA))


async def until_read_there(database: Database, workspace: Workspace | int) -> None:
    while not await on_a_replica(database, workspace):  # noqa: ASYNC110 - another server gets there
        await asyncio.sleep(0.01)


def write_to_log(url: str) -> None:
    """Moves the primary's position, as the write of any other process does."""
    with psycopg.connect(url, autocommit=True) as superuser:
        superuser.execute("SELECT pg_logical_emit_message(true, 'priors', 'written')")


@asynccontextmanager
async def opened(url: str, *replicas: Standby) -> AsyncIterator[Database]:
    """A process with one connection to each server."""
    database = Database(url, pool_size=1, replica_urls=[replica.url() for replica in replicas])
    try:
        yield database
    finally:
        await database.close()


async def write(database: Database, workspace: Workspace, name: str) -> None:
    statement = "INSERT INTO runs (workspace_id, run_id, task) VALUES (%(workspace_id)s, %(name)s, '')"
    async with database.session(workspace) as session:
        await session.execute(statement, {"name": name})


async def names(database: Database, workspace: Workspace) -> set[str]:
    async with database.session(workspace, reading=True) as session:
        return set(await session.column("SELECT run_id FROM runs"))


async def test_a_reader_sees_what_its_workspace_has_just_written(connected: Database) -> None:
    here, there = [await workspace_in(connected, name) for name in ("here", "there")]
    for number in range(50):
        await write(connected, here, f"run {number}")
        assert f"run {number}" in await names(connected, here)
    await until_read_there(connected, here)
    assert len(await names(connected, here)) == 50
    # Row-level security holds on the replica.
    assert not await names(connected, there)
    assert connected.replicas()[0].reads > 0


@pytest.fixture
def exchanges(monkeypatch: pytest.MonkeyPatch) -> list[list[bytes]]:
    """The statements of each round trip from here on."""
    seen: list[list[bytes]] = []
    exchange = Wire.exchange

    async def counted(wire: Wire, commands: Sequence[Command]) -> list[PGresult]:
        seen.append([command.text for command in commands])
        return await exchange(wire, commands)

    monkeypatch.setattr(Wire, "exchange", counted)
    return seen


async def test_a_commit_tells_its_position_in_its_own_round_trip(
    connected: Database, exchanges: list[list[bytes]]
) -> None:
    workspace = await workspace_in(connected, "counted")
    async with opened(connected.url) as alone:
        for name, database in (("first", alone), ("second", connected)):
            await write(database, workspace, name)
        exchanges.clear()
        await write(alone, workspace, "alone")
        without = list(exchanges)
    exchanges.clear()
    await write(connected, workspace, "beside")
    # The looks of each second go on meanwhile.
    beside = [sent for sent in exchanges if sent not in ([PRIMARY.text], [REPLICA.text])]
    assert len(beside) == len(without)
    assert beside[-1] == [*without[-1][:-1], WROTE.text, COMMIT.text, POSITION.text]


async def test_without_replicas_no_statement_asks_for_positions(
    own_services: Services, exchanges: list[list[bytes]]
) -> None:
    async with (
        serving(own_services) as address,
        httpx.AsyncClient(base_url=address, headers={"X-Workspace": "counted"}, timeout=60) as client,
    ):
        await client.post("/api/memories", json={"kind": "note", "body": "The gate valve was replaced."})
        assert (await client.post("/api/search", json={"query": "gate valve"})).json()["hits"]
        assert (await client.get("/api/status")).json()["replicas"] == []
    sent = {statement for statements in exchanges for statement in statements}
    assert len(sent) > 10
    assert not sent & {WROTE.text, POSITION.text, PRIMARY.text, REPLICA.text}


async def test_a_replica_that_lags_leaves_its_readers_to_the_primary(
    connected: Database, standby: Standby, primary: tuple[EmbeddedPostgres, str, Path]
) -> None:
    here, there = [await workspace_in(connected, name) for name in ("lag", "untouched")]
    other = Database(primary[0].service_url, pool_size=2, replica_urls=[standby.url()])
    await until(other, serves=True)
    await until_read_there(connected, here)
    standby.call("pg_wal_replay_pause()")
    try:
        with seeing(seen := Seen()):
            await write(connected, here, "late")
        assert "late" in await names(connected, here)
        # In another process the caller's cookie tells it; a job reads from the primary in any case.
        with seeing(Seen(seen.written)):
            assert "late" in await names(other, here)
        with seeing(Seen()):
            read_from_primary()
            assert not await on_a_replica(other, there)
        assert "bytes behind the primary" in await until(connected, serves=False)
        await until(other, serves=False)
        assert "late" in await names(other, here)
    finally:
        standby.call("pg_wal_replay_resume()")
        await other.close()
    await until(connected, serves=True)
    assert "late" in await names(connected, here)


async def test_a_lost_replica_is_replaced_by_the_primary_and_comes_back(connected: Database, standby: Standby) -> None:
    here = await workspace_in(connected, "lost")
    await write(connected, here, "kept")
    await until_read_there(connected, 0)
    async with connected.session(0, reading=True) as session:
        assert await session.value(ON_A_REPLICA)
        standby.kill()
        assert not await session.value(ON_A_REPLICA)
    assert await names(connected, here) == {"kept"}
    assert await until(connected, serves=False)
    standby.start()
    await until(connected, serves=True)
    assert await names(connected, here) == {"kept"}


async def test_a_statement_that_a_replica_cannot_run_is_run_by_the_primary(connected: Database) -> None:
    here = await workspace_in(connected, "mistaken")
    await until(connected, serves=True)
    async with connected.session(here, reading=True) as session:
        with pytest.raises(psycopg.errors.UndefinedTable):
            await session.value("SELECT FROM nowhere")
        assert await session.value("SELECT 1") == 1
    await until(connected, serves=True)


@pytest.mark.usefixtures("connected")
async def test_what_was_written_before_a_process_began_is_required_of_a_replica(
    primary: tuple[EmbeddedPostgres, str, Path], standby: Standby
) -> None:
    server, url, _ = primary
    standby.call("pg_wal_replay_pause()")
    try:
        write_to_log(url)
        async with opened(server.service_url, standby) as database:
            while (reason := database.replicas()[0].reason) == NEW:
                assert not await on_a_replica(database, 0)
            assert "bytes behind the primary" in reason
    finally:
        standby.call("pg_wal_replay_resume()")


async def test_looks_go_on_while_every_connection_is_in_use(
    primary: tuple[EmbeddedPostgres, str, Path], standby: Standby
) -> None:
    server, url, _ = primary
    async with opened(server.service_url, standby) as database:
        await until(database, serves=True)
        async with database.session(0, transaction=False):
            standby.call("pg_wal_replay_pause()")
            try:
                write_to_log(url)
                while (state := database.replicas()[0]).serving:  # noqa: ASYNC110 - the process looks by itself
                    await asyncio.sleep(0.05)
            finally:
                standby.call("pg_wal_replay_resume()")
            assert "bytes behind the primary" in state.reason


@pytest.mark.usefixtures("connected")
async def test_a_reader_that_goes_to_the_primary_keeps_no_replica_busy(
    primary: tuple[EmbeddedPostgres, str, Path], standby: Standby
) -> None:
    async with opened(primary[0].service_url, standby) as database, AsyncExitStack() as stack:
        (replica,) = database._replicas._replicas
        assert await _caught_up(stack, replica, inf) is None
        async with replica.pool.wire() as wire:
            assert wire.idle


async def test_ratings_are_read_where_nothing_can_be_locked(connected: Database, standby: Standby) -> None:
    here = await workspace_in(connected, "unrated")
    async with connected.session(here) as session:
        statement = f"INSERT INTO memories {FILL['memories']}"
        await session.execute(statement, {"w": here.workspace_id, "a": A, "b": B})
    await until_read_there(connected, here)
    async with opened(standby.url()) as database:
        assert await Ratings(database=database).of_memory(here, A) == []


async def test_a_service_tells_its_replicas_and_names_what_a_caller_has_written(
    connected: Database, services: Services
) -> None:
    async with (
        serving(replace(services, database=connected)) as address,
        httpx.AsyncClient(base_url=address, headers={"X-Workspace": "told"}, timeout=60) as client,
    ):
        assert "set-cookie" not in (await client.get("/api/memories")).headers
        made = await client.post("/api/memories", json={"kind": "note", "body": "The gate valve was replaced."})
        assert made.headers["set-cookie"].startswith("priors_position=")
        assert (await client.get("/api/memories")).json()["memories"][0]["body"] == "The gate valve was replaced."
        # A busy machine may be late for one look.
        while not (state := (await client.get("/api/status")).json()["replicas"][0])["serving"]:
            assert state["reason"]
        assert state["reason"] == ""
        assert "priors_replica_serving" in (await client.get("/metrics")).text


async def test_what_is_no_replica_of_this_primary_serves_nobody(
    primary: tuple[EmbeddedPostgres, str, Path], database_url: str
) -> None:
    server, url, _ = primary
    for other, reason in ((url, "takes writes itself"), (database_url, "no replica of this primary")):
        database = Database(server.service_url, pool_size=2, replica_urls=[other])
        while reason not in database.replicas()[0].reason:
            await on_a_replica(database, 0)
            await asyncio.sleep(0.01)
        assert not await on_a_replica(database, 0)
        await database.close()


async def test_of_several_servers_the_one_that_takes_writes_is_used(
    primary: tuple[EmbeddedPostgres, str, Path], standby: Standby
) -> None:
    _, _, folder = primary
    replica = parse_qs(urlsplit(standby.url()).query)["host"][0]
    servers = f"postgresql://priors@/priors?host={replica},{folder}&port=5432,5432&target_session_attrs="
    for wanted, found in (("read-write", False), ("prefer-standby", True)):
        database = Database(servers + wanted, pool_size=1)
        async with database.session(0, transaction=False) as session:
            assert await session.value(ON_A_REPLICA) is found
        await database.close()
    async with procrastinate_app(servers + "read-write").open_async() as jobs:
        assert await jobs.job_manager.get_stalled_jobs() == []
    upgrade(servers.replace("priors@", "postgres@") + "read-write")


async def test_a_server_that_takes_no_writes_is_left(standby: Standby) -> None:
    database = Database(standby.url(), pool_size=1)
    with pytest.raises(DatabaseUnavailable, match="target_session_attrs=read-write"):
        await workspace_in(database, "nowhere")
    await database.close()


@pytest.mark.parametrize(
    ("given", "parameters"),
    [
        ("postgresql://me:p%40ss@one,two/db", "host=one%2Ctwo&port=%2C"),
        ("postgres://me:p%40ss@one:1,two:2/db?a=b", "a=b&host=one%2Ctwo&port=1%2C2"),
        ("postgresql://me:p%40ss@[::1]:1,two:2/db", "host=%3A%3A1%2Ctwo&port=1%2C2"),
    ],
)
def test_a_url_of_several_servers_is_one_for_libpq(given: str, parameters: str) -> None:
    found = make_url(libpq_url(given)).difference_update_query(SILENCE).render_as_string(hide_password=False)
    assert found == f"postgresql://me:p%40ss@/db?{parameters}"


def test_a_comma_in_a_password_names_no_second_server() -> None:
    found = make_url(libpq_url("postgresql://me:a,b@one/db"))
    assert (found.host, found.password) == ("one", "a,b")


def test_a_replica_needs_the_url_of_its_primary() -> None:
    with pytest.raises(ConfigurationError, match="PRIORS_DATABASE_URL"):
        from_environment({"PRIORS_REPLICA_URL": "postgresql://host/priors"})
    with pytest.raises(ConfigurationError, match="PRIORS_REPLICA_URL"):
        Database("postgresql://host/priors", pool_size=1, replica_urls=["mysql://host/priors"])
