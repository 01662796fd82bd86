"""A URL of several servers leads to the one that takes writes."""

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
from sqlalchemy import make_url

from app.errors import DatabaseUnavailable
from app.foundation.db.database import Database
from app.foundation.db.migrations import upgrade
from app.foundation.db.pool import SILENCE, libpq_url
from app.foundation.postgres.cluster import DataDirectory
from app.foundation.postgres.embedded import EmbeddedPostgres
from app.interfaces.worker.worker import procrastinate_app
from tests.conftest import workspace_in
from tests.fakes.standby import Standby

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
        while True:
            with suppress(psycopg.OperationalError):
                found.call("1")
                break
            time.sleep(0.05)
        yield found


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
