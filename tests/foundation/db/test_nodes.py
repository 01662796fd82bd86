"""Sessions that need their workspace alone go to its node; most tests here are skipped where there is no cluster."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from types import SimpleNamespace

import psycopg
import pytest
import pytest_asyncio
from psycopg import sql
from sqlalchemy import make_url

from app.errors import ConnectionsInUse
from app.foundation.db import nodes, pool
from app.foundation.db.database import Database
from app.foundation.db.pool import libpq_url, url_at
from app.foundation.models.protocols import TokenCounter
from app.operations.status import Overview
from app.recall.retrieval.recall import Query
from app.recall.retrieval.service import Retrieval
from app.storage.memories.memory import NewMemory
from app.storage.memories.remember import WriteGate
from app.storage.recalls.service import Recalls
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from benchmarks.nodes import Node, Place, move, place_of, workers
from tests.cluster import is_cluster
from tests.conftest import histories_of, workspace_in

PORT = "SELECT inet_server_port()"
"""On a cluster all servers have one address in the tests."""
CONNECTIONS = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'priors'
"""
TEXT = "The pump of the boiler was replaced after its bearing had failed."
ALICES = "Alice keeps a bearing for the second pump in the store room."


@pytest.fixture
def _needs_a_cluster(server_url: str) -> None:
    if not is_cluster(server_url):
        pytest.skip("needs PRIORS_TEST_DATABASE_URL to name the coordinator of a Citus cluster")


@pytest_asyncio.fixture
async def asking(own_database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Database]:
    """A database of its own whose nodes are asked, and where the places of shards are read anew each time."""
    monkeypatch.setattr(nodes, "LOOK_SECONDS", 0.0)
    database = Database(own_database_url, pool_size=2, ask_nodes=True)
    yield database
    await database.close()


async def port_of(database: Database, workspace: Workspace) -> int:
    """Returns the port of the server that serves a session at the workspace's node."""
    async with database.session(workspace, reading=True, at_node=True) as session:
        return int(await session.value(PORT))


async def stored(
    database: Database, counter: TokenCounter, workspace: Workspace, *, text: str = TEXT, user: str = ""
) -> None:
    done = await WriteGate(database=database, counter=counter).remember(
        workspace, [NewMemory(kind="note", body=text, user=user)]
    )
    assert done.stored == 1


@pytest_asyncio.fixture
async def workspace(asking: Database, counter: TokenCounter) -> Workspace:
    """A workspace of that database that holds TEXT."""
    workspace = await workspace_in(asking, "w")
    await stored(asking, counter, workspace)
    return workspace


async def found(services: Services, database: Database, workspace: Workspace) -> list[str]:
    """Searches and returns the texts of the hits, which the log must have too."""
    query = Query(text="bearing of a pump", k=5, min_probability=0.0)
    recall = await Retrieval(database=database, provider=services.provider).search(workspace, query)
    logged = await Recalls(database=database).get(workspace, recall.recall_id)
    assert [hit.memory_id for hit in logged.hits] == [hit.memory.memory_id for hit in recall.hits]
    return [hit.body for hit in recall.hits]


def another(url: str, place: Place) -> Node:
    """Returns a node that does not have the shard."""
    return next(node for node in workers(url) if node != place.node)


def set_on(url: str, node: Node, value: str) -> None:
    """Sets `priors.distributed` of a database on one node alone, for new connections."""
    with psycopg.connect(libpq_url(url_at(url, *node)), autocommit=True) as connection:
        statement = "SET citus.enable_ddl_propagation = off; ALTER DATABASE {} SET priors.distributed = {}"
        connection.execute(sql.SQL(statement).format(sql.Identifier(connection.info.dbname), value))


def connections_to(url: str, node: Node) -> int:
    """Returns the number of the service's own connections to a database on a node."""
    with psycopg.connect(libpq_url(url_at(url, *node))) as connection:
        row = connection.execute(CONNECTIONS).fetchone()
    return int(row[0]) if row else 0


async def test_one_postgres_serves_every_session(
    services: Services, counter: TokenCounter, own_database_url: str
) -> None:
    database = Database(own_database_url, pool_size=2, ask_nodes=True)
    workspace = await workspace_in(database, "w")
    await stored(database, counter, workspace)
    assert await found(services, database, workspace) == [TEXT]
    await database.close()


@pytest.mark.usefixtures("_needs_a_cluster")
async def test_a_search_and_its_log_go_to_the_node_of_the_workspace(
    services: Services, asking: Database, workspace: Workspace
) -> None:
    assert await found(services, asking, workspace) == [TEXT]
    assert await port_of(asking, workspace) == place_of(asking.url, workspace.workspace_id).node.port
    async with asking.session(workspace, reading=True) as session:
        assert await session.value(PORT) == make_url(asking.url).port


@pytest.mark.usefixtures("_needs_a_cluster")
async def test_a_node_shows_a_session_its_own_workspace_and_user_alone(
    services: Services, counter: TokenCounter, asking: Database
) -> None:
    ours, theirs = [await workspace_in(asking, name) for name in ("ours", "theirs")]
    for workspace in (ours, theirs):
        await stored(asking, counter, workspace)
    await stored(asking, counter, ours, text=ALICES, user="alice")
    bob = ours.for_reading("bob")
    for workspace, users in ((ours, ["", "alice"]), (ours.of("alice"), ["alice"]), (bob, [""])):
        async with asking.session(workspace, reading=True, at_node=True) as session:
            seen = await session.tuples("SELECT workspace_id, user_id FROM memories ORDER BY user_id")
        assert seen == [(ours.workspace_id, user) for user in users]
    assert set(await found(services, asking, ours.for_reading("alice"))) == {TEXT, ALICES}
    assert await found(services, asking, bob) == [TEXT]


@pytest.mark.usefixtures("_needs_a_cluster")
async def test_a_run_continues_its_section_at_the_node(
    services: Services, counter: TokenCounter, asking: Database, workspace: Workspace
) -> None:
    query = Query(text="bearing of a pump", k=5, run_id="r", min_probability=0.0)
    told = [
        await histories_of(asking, services.provider, counter).get(workspace, query, budget_tokens=500, stable=True)
        for _ in range(2)
    ]
    assert [one.markdown.count(TEXT) for one in told] == [1, 1]
    assert told[1].reuse is not None
    assert len(told[1].reuse.kept) == 1


@pytest.mark.usefixtures("_needs_a_cluster")
async def test_a_shard_that_moves_is_followed(
    services: Services, asking: Database, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = place_of(asking.url, workspace.workspace_id)
    other = another(asking.url, place)
    # By the sixth time a connection keeps the plan of a statement.
    for _ in range(8):
        assert await port_of(asking, workspace) == place.node.port
        assert await found(services, asking, workspace) == [TEXT]
    with monkeypatch.context() as patched:
        patched.setattr(nodes, "LOOK_SECONDS", 3600.0)
        await asyncio.to_thread(move, asking.url, place, other)
        # The node that had the shard still answers.
        assert await found(services, asking, workspace) == [TEXT]
        assert await port_of(asking, workspace) == place.node.port
    assert await port_of(asking, workspace) == other.port
    assert await found(services, asking, workspace) == [TEXT]


@pytest.mark.usefixtures("_needs_a_cluster")
async def test_the_coordinator_serves_where_a_node_cannot_be_reached(
    services: Services, asking: Database, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        nodes, "url_at", lambda url, *_: make_url(url).set(port=1).render_as_string(hide_password=False)
    )
    assert await found(services, asking, workspace) == [TEXT]
    assert await port_of(asking, workspace) == make_url(asking.url).port
    state = await Overview(database=asking).status(workspace, services.provider, model_loaded=True)
    assert "is not asked: the database does not answer" in state.reasons[-1]


@pytest.mark.usefixtures("_needs_a_cluster")
async def test_the_coordinator_serves_where_a_node_is_not_prepared_until_it_is(
    services: Services, asking: Database, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = place_of(asking.url, workspace.workspace_id).node
    set_on(asking.url, node, "off")
    assert await found(services, asking, workspace) == [TEXT]
    assert await port_of(asking, workspace) == make_url(asking.url).port
    reason = f"the node {node.host}:{node.port} is not asked: {nodes.UNPREPARED}"
    assert (asking.unasked_nodes(), await asking.check_nodes()) == ([reason], [reason])
    set_on(asking.url, node, "on")
    assert await port_of(asking, workspace) == make_url(asking.url).port
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + nodes.AWAY_SECONDS)
    monkeypatch.setattr(nodes, "time", later)
    assert await port_of(asking, workspace) == node.port
    assert asking.unasked_nodes() == []


@pytest.mark.usefixtures("_needs_a_cluster")
async def test_a_node_whose_connections_are_in_use_is_still_asked(
    own_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "POOL_TIMEOUT_SECONDS", 0.1)
    database = Database(own_database_url, pool_size=1, ask_nodes=True)
    workspace = await workspace_in(database, "w")
    async with database.session(workspace, reading=True, at_node=True) as session:
        port = await session.value(PORT)
        with pytest.raises(ConnectionsInUse):
            await port_of(database, workspace)
    assert await port_of(database, workspace) == port == place_of(database.url, workspace.workspace_id).node.port
    await database.close()


@pytest.mark.usefixtures("_needs_a_cluster")
async def test_those_that_queue_for_a_silent_node_are_served_too(
    own_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "CONNECT_TIMEOUT_SECONDS", 2)
    monkeypatch.setattr(pool, "POOL_TIMEOUT_SECONDS", 3)
    database = Database(own_database_url, pool_size=1, ask_nodes=True)
    workspace = await workspace_in(database, "w")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = silent.getsockname()
        monkeypatch.setattr(nodes, "url_at", lambda url, *_: url_at(url, *address))
        ports = await asyncio.gather(*(port_of(database, workspace) for _ in range(3)))
    assert ports == [make_url(database.url).port] * 3
    await database.close()


@pytest.mark.usefixtures("_needs_a_cluster")
async def test_a_node_that_leaves_the_cluster_gives_no_wrong_answer(
    services: Services, asking: Database, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    await port_of(asking, workspace)
    monkeypatch.setattr(nodes, "LOOK_SECONDS", 3600.0)
    node = place_of(asking.url, workspace.workspace_id).node
    with psycopg.connect(asking.url, autocommit=True) as connection:
        connection.execute("SELECT citus_set_node_property(%s, %s, 'shouldhaveshards', false)", node)
        connection.execute("SELECT citus_drain_node(%s, %s, shard_transfer_mode => 'block_writes')", node)
        connection.execute("SELECT citus_remove_node(%s, %s)", node)
    assert await found(services, asking, workspace) == [TEXT]
    assert connections_to(asking.url, node) > 0
    monkeypatch.setattr(nodes, "LOOK_SECONDS", 0.0)
    assert await found(services, asking, workspace) == [TEXT]
    assert connections_to(asking.url, node) == 0
