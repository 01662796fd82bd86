"""Databases on a Citus cluster, for the tests that PRIORS_TEST_DATABASE_URL leads there."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from uuid import uuid4

import psycopg
from psycopg import sql
from sqlalchemy import make_url

from app.foundation.db.distribution import SETTINGS, distribute
from app.foundation.db.migrations import upgrade
from app.foundation.db.pool import OWNER, SERVICE, libpq_url

NODES = "SELECT nodename, nodeport, groupid = 0 FROM pg_dist_node ORDER BY groupid"
# Another database of the coordinator's server may have made the roles there already, and the nodes lack them then.
MAKE_ROLES = f"""
DO $$
DECLARE role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['{OWNER}', '{SERVICE}'] LOOP
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;
        END;
    END LOOP;
END $$
"""
CREATE = "CREATE DATABASE {} TEMPLATE {} LOCALE 'C.UTF-8'"
EMPTY = "template0"
"""The template of an empty database with any locale."""
DROP = "DROP DATABASE IF EXISTS {} WITH (FORCE)"
CLOSE = "ALTER DATABASE {} ALLOW_CONNECTIONS false"
END_CONNECTIONS = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = {}"
WAITS = """
SELECT EXISTS (
    SELECT FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE datname = current_database() AND NOT granted
)
"""
WAITS_ON_A_NODE = "SELECT bool_or(CAST(result AS boolean)) FROM run_command_on_all_nodes({question})"
SHARDS = 2
"""Few, because each database makes them for all tables."""


@cache
def is_cluster(url: str) -> bool:
    """Tells if the database is the coordinator of a Citus cluster."""
    with psycopg.connect(libpq_url(url)) as connection:
        row = connection.execute("SELECT to_regclass('pg_dist_node') IS NOT NULL").fetchone()
    return bool(row and row[0])


async def a_statement_waits(url: str) -> bool:
    """Tells if a statement waits for a lock, on the server of this database or on a node of its cluster."""
    question = sql.SQL(WAITS_ON_A_NODE).format(question=WAITS) if is_cluster(url) else sql.SQL(WAITS)
    async with await psycopg.AsyncConnection.connect(libpq_url(url), autocommit=True) as connection:
        (answer,) = await (await connection.execute(question)).fetchone() or (False,)
        return bool(answer)


@contextmanager
def fresh_cluster_database(server_url: str) -> Iterator[str]:
    """Yields the URL of an empty database on all nodes, and drops it at the end."""
    nodes = _nodes(server_url)
    with _on_all_nodes(server_url, EMPTY) as name:
        for node in nodes:
            _run(_url(server_url, node, name), "CREATE EXTENSION citus", "CREATE EXTENSION vector", MAKE_ROLES)
        coordinator, *_ = nodes
        url = _url(server_url, coordinator, name)
        _run(url, _function("citus_set_coordinator_host", coordinator))
        _run(url, *(_function("citus_add_node", node) for node in nodes[1:]))
        yield url


@contextmanager
def distributed_template(server_url: str) -> Iterator[str]:
    """Yields the name of a distributed database on all nodes that nobody may connect to, for copies of it."""
    with fresh_cluster_database(server_url) as url:
        upgrade(url)
        distribute(url, shards=SHARDS)
        for node in _nodes(server_url):
            close_to_all(url, node)
        yield str(make_url(url).database)


def close_to_all(url: str, node: tuple[str, int]) -> None:
    """Lets nobody connect to a database on this node, and ends the connections to it."""
    name = str(make_url(url).database)
    statements = sql.SQL(CLOSE).format(sql.Identifier(name)), sql.SQL(END_CONNECTIONS).format(name)
    _run(_url(url, node, "postgres"), *statements)


@contextmanager
def copied_cluster_database(server_url: str, template: str) -> Iterator[str]:
    """Yields the URL of a copy of a distributed database on all nodes, and drops it at the end."""
    with _on_all_nodes(server_url, template) as name:
        coordinator, *_ = nodes = _nodes(server_url)
        for node in nodes:
            _run(_url(server_url, node, name), *_settings(name))
        yield _url(server_url, coordinator, name)


def _settings(name: str) -> Iterator[sql.Composed]:
    """Yields statements that give a copy the settings of its template, which are no part of the data."""
    for setting, value in SETTINGS.items():
        yield sql.SQL("ALTER DATABASE {} SET {} = {}").format(sql.Identifier(name), sql.SQL(setting), value)


@contextmanager
def _on_all_nodes(server_url: str, template: str) -> Iterator[str]:
    """Makes a database on each node that copies `template`, yields its name, and drops it at the end."""
    name = f"priors_{uuid4().hex[:12]}"
    urls = [_url(server_url, node) for node in _nodes(server_url)]
    for url in urls:
        _run(url, sql.SQL(CREATE).format(sql.Identifier(name), sql.Identifier(template)))
    try:
        yield name
    finally:
        for url in urls:
            _run(url, sql.SQL(DROP).format(sql.Identifier(name)))


def _function(name: str, node: tuple[str, int]) -> sql.Composed:
    return sql.SQL("SELECT {}({}, {})").format(sql.SQL(name), *node)


@cache
def _nodes(server_url: str) -> list[tuple[str, int]]:
    """Returns host and port of each node, those of the coordinator first."""
    with psycopg.connect(server_url) as connection:
        return [(host, port) for host, port, _ in connection.execute(NODES)]


def _url(server_url: str, node: tuple[str, int], database: str | None = None) -> str:
    """Returns the URL of a database on a node; that of the given one by default."""
    host, port = node
    url = make_url(server_url).set(host=host, port=port)
    return url.set(database=database or url.database).render_as_string(hide_password=False)


def _run(url: str, *statements: str | sql.Composed) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)
