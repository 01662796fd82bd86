"""A database whose disk is full: a real file system of a few megabytes, mounted for the test."""

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import httpx
import psycopg
import pytest
import pytest_asyncio
from psycopg import sql
from sqlalchemy import make_url

from app.foundation.db.database import Database
from app.foundation.db.migrations import upgrade
from app.foundation.postgres.embedded import EmbeddedPostgres
from app.interfaces.http.serving.application import create_app
from app.wiring import Services
from tests.conftest import serving


@contextmanager
def mounted(folder: Path, *, size: str) -> Iterator[None]:
    """Mounts a file system of this size at the folder, which it makes."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root may mount a small file system")
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=False)
    if done.returncode != 0:
        folder.rmdir()
        pytest.skip("no file system can be mounted here")
    yield
    subprocess.run(["umount", str(folder)], check=True)
    folder.rmdir()


@pytest.fixture
def small_disk(server_url: str, tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system of its own that the server may write to."""
    with psycopg.connect(server_url) as connection:
        row = connection.execute("SELECT current_setting('data_directory')").fetchone()
    data = Path(row[0]) if row else tmp_path
    if not data.is_dir():
        pytest.skip("the server is on another machine")
    folder = data.parent / f"small-{tmp_path.name}"
    with mounted(folder, size="48m"):
        owner = data.stat()
        os.chown(folder, owner.st_uid, owner.st_gid)
        yield folder


@pytest.fixture
def small_database_url(server_url: str, migrated_template: str, small_disk: Path) -> Iterator[str]:
    """A migrated database on that disk."""
    name = sql.Identifier("priors_small")
    with psycopg.connect(server_url, autocommit=True) as connection:
        location = sql.Literal(str(small_disk))
        connection.execute(sql.SQL("CREATE TABLESPACE priors_small LOCATION {}").format(location))
        made = "CREATE DATABASE {} TEMPLATE {} TABLESPACE priors_small"
        connection.execute(sql.SQL(made).format(name, sql.Identifier(migrated_template)))
    yield make_url(server_url).set(database="priors_small").render_as_string(hide_password=False)
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))
        connection.execute("DROP TABLESPACE priors_small")


@pytest_asyncio.fixture(loop_scope="session")
async def on_small_disk(services: Services, small_database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a service whose database is on the small disk."""
    database = Database(small_database_url, pool_size=2)
    app = create_app(services.settings, services=replace(services, database=database))
    app.state.context.model_loaded = True
    transport = httpx.ASGITransport(cast("Any", app), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client:
        yield client
    await database.close()


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)


async def test_a_full_disk_is_told_and_ends_with_its_cause(on_small_disk: httpx.AsyncClient, small_disk: Path) -> None:
    client, filler = on_small_disk, small_disk / "filler"
    known = {"kind": "note", "body": "The scout verified twelve producers in the state register."}
    assert (await client.post("/api/memories", json=known)).status_code == 200
    with pytest.raises(OSError, match="No space left"):
        fill(filler)
    answers: list[httpx.Response] = []
    while not answers or answers[-1].status_code == 200:
        bodies = (os.urandom(20_000).hex() for _ in range(4))
        notes = [{"kind": "note", "body": f"Finding {body}"} for body in bodies]
        answers = [await client.post("/api/memories", json=note) for note in notes]
    refused = answers[-1]
    assert refused.status_code == 507, refused.text
    assert "the disk of the database is full" in refused.json()["detail"]
    ready = await client.get("/ready")
    assert ready.status_code == 503
    assert any("the disk of the database is full" in reason for reason in ready.json()["reasons"])
    found = await client.post("/api/search", json={"query": "which producers did the scout verify"})
    assert found.status_code == 200, found.text
    assert [hit["body"] for hit in found.json()["hits"]][:1] == [known["body"]]
    filler.unlink()
    assert not any("full" in reason for reason in (await client.get("/ready")).json()["reasons"])
    later = {"kind": "note", "body": "The director accepted the list after the second round."}
    assert (await client.post("/api/memories", json=later)).status_code == 200


@pytest_asyncio.fixture(loop_scope="session")
async def served_from_small_disk(services: Services, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a service with its own Postgres, whose whole data directory is on a disk of 96 MB."""
    folder = tmp_path / "small"
    with mounted(folder, size="96m"), EmbeddedPostgres(folder / "data") as embedded:
        url = embedded.start()
        upgrade(url)
        database = Database(embedded.service_url, admin_url=url, pool_size=2)
        own = replace(services, database=database, revive=lambda: asyncio.to_thread(embedded.start))
        async with serving(own) as where, httpx.AsyncClient(base_url=where, timeout=60) as client:
            yield client
        await database.close()


async def until_ready(client: httpx.AsyncClient, told: Callable[[list[str]], bool]) -> None:
    while not told((await client.get("/ready")).json()["reasons"]):  # noqa: ASYNC110 - the service is asked
        await asyncio.sleep(0.1)


@pytest.mark.test_all("kills")
async def test_a_server_that_ends_for_lack_of_room_says_so_and_comes_back(
    served_from_small_disk: httpx.AsyncClient, tmp_path: Path
) -> None:
    client, filler = served_from_small_disk, tmp_path / "small" / "filler"
    known = {"kind": "note", "body": "The scout verified twelve producers in the state register."}
    assert (await client.post("/api/memories", json=known)).status_code == 200
    with pytest.raises(OSError, match="No space left"):
        fill(filler)
    server = int((tmp_path / "small" / "data" / "postgres" / "postmaster.pid").read_text().split()[0])
    os.kill(server, signal.SIGKILL)
    await until_ready(client, lambda reasons: any("No space left" in reason for reason in reasons))
    refused = await client.post("/api/memories", json=known)
    assert (refused.status_code, "No space left on device" in refused.json()["detail"]) == (503, True)
    filler.unlink()
    await until_ready(client, lambda reasons: not reasons)
    assert (await client.post("/api/memories", json=known)).json()["unchanged"] == 1
