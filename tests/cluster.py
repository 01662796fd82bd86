"""Databases on a Citus cluster, for the tests that PRIORS_TEST_DATABASE_URL leads there."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from uuid import uuid4

import psycopg
from psycopg import sql
from sqlalchemy import make_url

from app.db.distribution import distribute
from app.db.migrations import upgrade

NODES = "SELECT nodename, nodeport, groupid = 0 FROM pg_dist_node ORDER BY groupid"
CREATE = "CREATE DATABASE {} TEMPLATE template0 LOCALE 'C.UTF-8'"
SHARDS = 2
"""Few, because each fresh database makes them for all tables."""


@cache
def is_cluster(url: str) -> bool:
    """Tells if the database is the coordinator of a Citus cluster."""
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT to_regclass('pg_dist_node') IS NOT NULL").fetchone()
    return bool(row and row[0])


@contextmanager
def fresh_cluster_database(server_url: str, *, migrated: bool) -> Iterator[str]:
    """Yields the URL of a database on all nodes, distributed if it is migrated, and drops it at the end."""
    with psycopg.connect(server_url) as connection:
        nodes = connection.execute(NODES).fetchall()
    name = f"priors_{uuid4().hex[:12]}"
    servers = [make_url(server_url).set(host=host, port=port) for host, port, _ in nodes]
    for server in servers:
        _run(server.render_as_string(hide_password=False), sql.SQL(CREATE).format(sql.Identifier(name)))
    urls = [server.set(database=name).render_as_string(hide_password=False) for server in servers]
    for url in urls:
        _run(url, "CREATE EXTENSION citus", "CREATE EXTENSION vector")
    for host, port, coordinates in nodes:
        function = sql.SQL("citus_set_coordinator_host" if coordinates else "citus_add_node")
        _run(urls[0], sql.SQL("SELECT {}({}, {})").format(function, host, port))
    if migrated:
        upgrade(urls[0])
        distribute(urls[0], shards=SHARDS)
    yield urls[0]
    for server in servers:
        drop = sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
        _run(server.render_as_string(hide_password=False), drop)


def _run(url: str, *statements: str | sql.Composed) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)
