"""A backup is whole or not there, and what is restored answers as before, with its vectors, up to a chosen moment."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from app.errors import ConfigurationError, DatabaseUnavailable, InvalidInput
from app.foundation.db.migrations import upgrade
from app.foundation.postgres.cluster import DataDirectory
from app.operations.access import AuditLog, AuditQuestion
from app.operations.backup import CLUSTER, DUMP, LABEL, Replay, _run, _whole_or_not, back_up, restore
from app.recall.retrieval.recall import Query
from app.recall.retrieval.service import Retrieval
from app.settings import Settings
from app.wiring import Services, opened_database
from tests.interfaces.worker.working import note


@asynccontextmanager
async def opened(services: Services, settings: Settings) -> AsyncIterator[Services]:
    async with opened_database(settings, pool_size=2) as (database, _):
        await asyncio.to_thread(upgrade, database.admin_url)
        yield replace(services, database=database, settings=settings)


async def keep(services: Services, valve: str) -> None:
    await note(services, f"The {valve} valve was replaced.")
    await services.embedder.serving_model()
    await services.embedder.embed_all_pending(services.database.across, seconds=600)


async def valves(services: Services) -> set[str]:
    """Returns the valves that a search by both arms finds."""
    workspace = await services.workspaces.resolve("w")
    query = Query(text="Which valve was replaced?", k=10)
    recall = await Retrieval(database=services.database, provider=services.provider).search(workspace, query)
    assert (recall.mode, recall.degraded) == ("hybrid", ())
    return {hit.body.split()[1] for hit in recall.hits}


async def archived(url: str) -> None:
    """Waits until all changes up to now are in the archive."""
    with psycopg.connect(url, autocommit=True) as superuser:
        (row,) = superuser.execute("SELECT pg_walfile_name(pg_switch_wal())").fetchall()
        while True:
            (last,) = superuser.execute("SELECT coalesce(last_archived_wal, '') FROM pg_stat_archiver").fetchall()
            if last >= row:
                return
            await asyncio.sleep(0.05)


@pytest.mark.test_all("processes")
async def test_the_embedded_store_is_restored_up_to_a_moment(services: Services, tmp_path: Path) -> None:
    here, archive = Settings(data_dir=tmp_path / "data"), tmp_path / "archive"
    archive.mkdir()
    archive.chmod(0o777)
    archiving = f"""archive_command = 'test ! -f "{archive}/%f" && cp "%p" "{archive}/%f"'"""
    here.data_dir.mkdir()
    cluster = DataDirectory(here.data_dir / CLUSTER)
    cluster.ensure()
    # A busy disk keeps nobody waiting.
    cluster.write({"postgresql.auto.conf": f"fsync = off\narchive_mode = on\n{archiving}\n"})
    folder = tmp_path / "backup"
    async with opened(services, here) as store:
        await keep(store, "gate")
        before = datetime.now(UTC)
        made = await back_up(here, folder)
        (entry,) = await AuditLog(database=store.database).entries(None, AuditQuestion(action="export"))
        assert (entry.object, entry.count) == ("store", 1)
        await keep(store, "ball")
        moment = datetime.now(UTC)
        await keep(store, "check")
        await archived(store.database.admin_url)
    assert (made.kind, {path.name for path in folder.iterdir()}) == ("embedded", {CLUSTER, LABEL})
    with pytest.raises(InvalidInput, match="nothing is overwritten"):
        await back_up(here, folder)
    with pytest.raises(InvalidInput, match="nothing is overwritten"):
        await restore(here, folder)
    with pytest.raises(InvalidInput, match="before the backup"):
        await restore(Settings(data_dir=tmp_path / "none"), folder, Replay(archive=archive, until=before))
    with pytest.raises(InvalidInput, match="is no folder"):
        await restore(Settings(data_dir=tmp_path / "none"), folder, Replay(archive=tmp_path / "a", until=moment))
    archive = archive.rename(tmp_path / "the server's $HOME \\ 100 %f")
    kept = {path.name for path in archive.iterdir()}
    for name, replay, expected in (
        ("then", None, {"gate"}),
        ("later", Replay(archive=archive, until=moment), {"gate", "ball"}),
    ):
        there = Settings(data_dir=tmp_path / name)
        await restore(there, folder, replay)
        async with opened(services, there) as restored:
            assert await valves(restored) == expected
            await keep(restored, "safety")
            with psycopg.connect(restored.database.admin_url) as superuser:
                assert superuser.execute("SHOW archive_mode").fetchall() == [("off",)]
    assert {path.name for path in archive.iterdir()} == kept
    (segment, *_) = sorted((folder / CLUSTER / "pg_wal").glob("0*"))
    for damaged in (segment, folder / CLUSTER / "global" / "pg_control"):
        damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
        with pytest.raises(InvalidInput, match=damaged.name):
            await restore(Settings(data_dir=tmp_path / "none"), folder)
    assert not (tmp_path / "none" / CLUSTER).exists()


@pytest.mark.one_server("a distributed store is not dumped whole")
async def test_a_database_is_dumped_and_restored_into_an_empty_one(
    own_services: Services, empty_database_url: str, tmp_path: Path
) -> None:
    await keep(own_services, "gate")
    folder = tmp_path / "backup"
    assert (await back_up(own_services.settings, folder)).kind == "dump"
    there = replace(own_services.settings, database_url=empty_database_url)
    await restore(there, folder)
    async with opened(own_services, there) as restored:
        assert await valves(restored) == {"gate"}
    with pytest.raises(InvalidInput, match="holds a store already"):
        await restore(there, folder)
    with pytest.raises(ConfigurationError, match="PRIORS_DATABASE_URL"):
        await restore(Settings(data_dir=tmp_path / "data"), folder)
    (folder / DUMP).write_bytes(b"")
    with pytest.raises(InvalidInput, match="damaged"):
        await restore(there, folder)
    with pytest.raises(InvalidInput, match="no backup"):
        await restore(there, tmp_path)


def test_a_distributed_store_is_not_dumped(undistributed_database_url: str, tmp_path: Path) -> None:
    with psycopg.connect(undistributed_database_url, autocommit=True) as superuser:
        superuser.execute(
            sql.SQL("ALTER DATABASE {} SET priors.distributed = 'on'").format(sql.Identifier(superuser.info.dbname))
        )
    with pytest.raises(ConfigurationError, match="priors workspace dump"):
        asyncio.run(back_up(Settings(database_url=undistributed_database_url), tmp_path / "backup"))
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_of_a_backup_that_fails(tmp_path: Path) -> None:
    away = Settings(database_url="postgresql://nobody@127.0.0.1:1/none")
    with pytest.raises(DatabaseUnavailable):
        asyncio.run(back_up(away, tmp_path / "backup"))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "backup"
    with pytest.raises(ConfigurationError, match=f"{folder} cannot be made"), _whole_or_not(folder):
        pass


def test_a_server_may_be_named_by_its_socket_alone() -> None:
    with pytest.raises(DatabaseUnavailable, match='socket "/nowhere'):
        _run("pg_dump", "--dbname", url="postgresql:///none?host=/nowhere")
