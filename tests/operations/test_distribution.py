"""A filled database that is distributed over the nodes of a Citus cluster; skipped where the tests have none."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from app.db.database import Database
from app.db.distribution import Distribution, distribute, tables_of_workspaces
from app.db.migrations import upgrade
from app.index.backfill import embed_pending
from app.memories.memory import NewMemory
from app.memories.remember import Door, remember
from app.models.protocols import TokenCounter
from app.operations.maintenance import prepare_model
from app.wiring import Services
from tests.cluster import SHARDS, fresh_cluster_database, is_cluster
from tests.conftest import workspace_in
from tests.db.test_row_security import FILL, A, B
from tests.operations.test_dump import TEXTS, contents, hits, named


@pytest.fixture
def cluster_url(server_url: str) -> Iterator[str]:
    """A migrated database on all nodes of a cluster that is not distributed yet."""
    if not is_cluster(server_url):
        pytest.skip("needs PRIORS_TEST_DATABASE_URL to name the coordinator of a Citus cluster")
    with fresh_cluster_database(server_url, migrated=False) as url:
        upgrade(url)
        yield url


async def test_a_filled_database_keeps_its_rows_and_its_answers(
    services: Services, counter: TokenCounter, cluster_url: str
) -> None:
    database = Database(cluster_url, pool_size=2)
    single = replace(services, database=database)
    workspace = await workspace_in(database, "w")
    await prepare_model(database, services.provider)
    await remember(Door(database, counter, workspace), [NewMemory(kind="note", body=text) for text in TEXTS])
    await embed_pending(database, services.provider, workspace=workspace)
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
    await database.close()
