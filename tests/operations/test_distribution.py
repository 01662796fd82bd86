"""A store that is distributed over the nodes of a Citus cluster; skipped where the tests have none."""

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from app.errors import DatabaseUnavailable
from app.foundation.db.database import Database
from app.foundation.db.distribution import Distribution, distribute, tables_of_workspaces
from app.foundation.db.migrations import upgrade
from app.foundation.db.pool import SESSION_SETTINGS
from app.foundation.db.session import Across
from app.foundation.models.protocols import TokenCounter
from app.operations.doctor import diagnose
from app.operations.status import Overview
from app.recall.retrieval.recall import Query
from app.settings import Settings
from app.storage.index import service as indexes
from app.storage.index.service import Embedder
from app.storage.memories.memory import NewMemory
from app.storage.memories.remember import WriteGate
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from benchmarks.nodes import Node, place_of, workers
from tests.cluster import SHARDS, close_to_all, fresh_cluster_database, is_cluster
from tests.conftest import histories_of, workspace_in
from tests.foundation.db.test_row_security import FILL, A, B
from tests.operations.test_dump import TEXTS, contents, hits, named

CITUS_WAITS_SECONDS = 30
"""The time for which Citus waits for a connection to a node, by default."""
ON_A_NODE = """
SELECT current_setting('{name}') FROM memories WHERE workspace_id = %(workspace_id)s LIMIT 1
"""


@pytest.fixture(autouse=True)
def _needs_a_cluster(server_url: str) -> None:
    if not is_cluster(server_url):
        pytest.skip("needs PRIORS_TEST_DATABASE_URL to name the coordinator of a Citus cluster")


@pytest.fixture
def cluster_url(server_url: str) -> Iterator[str]:
    """A migrated database on all nodes of a cluster that is not distributed yet."""
    with fresh_cluster_database(server_url) as url:
        upgrade(url)
        yield url


async def test_services_that_start_at_once_try_again_after_a_deadlock(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts, queue_lacking = list[Across](), indexes.queue_lacking

    async def deadlocked_once(across: Across) -> bool:
        attempts.append(across)
        if len(attempts) == 1:
            raise psycopg.errors.DeadlockDetected
        return await queue_lacking(across)

    monkeypatch.setattr(indexes, "queue_lacking", deadlocked_once)
    await services.embedder.prepare(services.database.across)
    assert len(attempts) == 2


async def test_a_filled_database_keeps_its_rows_and_its_answers(
    services: Services, counter: TokenCounter, cluster_url: str
) -> None:
    database = Database(cluster_url, pool_size=2)
    single = replace(services, database=database)
    workspace = await workspace_in(database, "w")
    await Embedder(database=database, provider=services.provider).prepare(database.across)
    await WriteGate(database=database, counter=counter).remember(
        workspace, [NewMemory(kind="note", body=text) for text in TEXTS]
    )
    await Embedder(database=database, provider=services.provider).embed_pending(workspace)
    async with database.session(workspace) as session:
        for table, rest in FILL.items():
            if table != "embeddings":
                await session.execute(f"INSERT INTO {table} {rest}", {"w": workspace.workspace_id, "a": A, "b": B})
    workspace = await named(database, "w")
    wanted = await hits(single, workspace, mode="lexical")
    before = await contents(database, workspace)
    assert all(before.values())
    await database.close()

    done = await asyncio.to_thread(distribute, cluster_url, shards=SHARDS)
    assert (set(done.by_workspace), len(done.everywhere)) == (set(tables_of_workspaces()), 2)
    assert await asyncio.to_thread(distribute, cluster_url) == Distribution([], [])

    database = Database(cluster_url, pool_size=2)
    assert await contents(database, workspace) == before
    assert await hits(replace(services, database=database), workspace, mode="lexical") == pytest.approx(wanted)
    async with database.session(workspace, reading=True) as session:
        given = {name: await session.value(ON_A_NODE.format(name=name)) for name in SESSION_SETTINGS}
        begun = {await session.value("SELECT now()") for _ in range(2)}
    await database.close()
    assert given == {**SESSION_SETTINGS, "plan_cache_mode": "auto"}
    assert len(begun) == 1, "a session that reads is one transaction"


async def test_the_doctor_tells_what_a_cluster_lacks(own_database_url: str, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, database_url=own_database_url)

    async def told() -> list[str]:
        return [found.message for found in await diagnose(settings) if found.subject == "cluster"]

    assert await told() == ["the store is distributed over 2 nodes, and all of them answer"]
    with psycopg.connect(own_database_url, autocommit=True) as connection:
        connection.execute(
            sql.SQL("ALTER DATABASE {} RESET hnsw.ef_search").format(sql.Identifier(connection.info.dbname))
        )
        connection.execute("ALTER TABLE run_sections DROP CONSTRAINT run_sections_workspaces_fk")
        connection.execute("SELECT undistribute_table('run_sections')")
    (message,) = await told()
    assert message == "the nodes lack run_sections, hnsw.ef_search: run `priors store distribute` while no service runs"
    await asyncio.to_thread(distribute, own_database_url, shards=SHARDS)
    close_to_all(own_database_url, workers(own_database_url)[0])
    (lost,) = await told()
    assert lost.startswith("the coordinator does not reach ")


@contextmanager
def _silent(url: str, node: Node) -> Iterator[None]:
    """Lets the coordinator find a node that takes connections and does not answer."""
    move = "UPDATE pg_dist_node SET nodeport = %s WHERE nodeport = %s"
    with socket.create_server(("127.0.0.1", 0)) as server, psycopg.connect(url, autocommit=True) as connection:
        port = server.getsockname()[1]
        connection.execute(move, [port, node.port])
        try:
            yield
        finally:
            connection.execute(move, [node.port, port])


def _bytes_of(url: str) -> int:
    """Returns the size of a database on its own server."""
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    return int(row[0]) if row else 0


async def on_two_nodes(database: Database) -> dict[Node, Workspace]:
    """Returns a workspace on each of two nodes, made now."""
    found: dict[Node, Workspace] = {}
    while len(found) < 2:
        workspace = await workspace_in(database, f"w{uuid4().hex}")
        found[place_of(database.url, workspace.workspace_id).node] = workspace
    return found


async def test_a_node_that_is_away_refuses_the_writes_of_its_own_workspaces_alone(
    own_services: Services, counter: TokenCounter
) -> None:
    database = own_services.database
    (away, lost), (_, other) = (await on_two_nodes(database)).items()

    async def write(workspace: Workspace, text: str) -> int:
        done = await WriteGate(database=database, counter=counter).remember(
            workspace, [NewMemory(kind="note", body=text)]
        )
        return done.stored

    # The first write of a workspace notes the mean length of its texts, on all nodes.
    assert [await write(workspace, TEXTS[0]) for workspace in (lost, other)] == [1, 1]
    close_to_all(database.url, away)
    assert await write(other, TEXTS[1]) == 1
    for task in TEXTS:
        told = await histories_of(database, own_services.provider, counter).get(
            other, Query(text=task, k=5, run_id="r", min_probability=0.0), budget_tokens=500, stable=True
        )
        assert told.markdown
    for silent in (False, True):
        with _silent(database.url, away) if silent else nullcontext():
            asked = time.monotonic()
            state = await Overview(database=database).status(other, own_services.provider, model_loaded=True)
        assert state.database_bytes > _bytes_of(database.url)
        assert time.monotonic() - asked < CITUS_WAITS_SECONDS
    with pytest.raises(DatabaseUnavailable):
        await write(lost, TEXTS[1])
