"""The nodes of a Citus cluster on this machine: where workspaces lie, how a shard moves, how a server is killed."""

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import psutil  # type: ignore[import-untyped]  # it has no types
import psycopg
from psycopg import sql
from sqlalchemy import make_url

from tests.cluster import CREATE, EMPTY

PLACE = """
SELECT shardid, nodename, nodeport FROM pg_dist_shard_placement
WHERE shardid = get_shard_id_for_distribution_column('sources', %s)
"""
WORKERS = "SELECT nodename, nodeport FROM pg_dist_node WHERE groupid > 0 AND shouldhaveshards ORDER BY nodeport"
MOVE = "SELECT citus_move_shard_placement(%s, %s, %s, %s, %s, shard_transfer_mode => 'force_logical')"
DEAD_PAUSE_SECONDS = 0.05


class Node(NamedTuple):
    """The address of a server of the cluster."""

    host: str
    port: int


class Place(NamedTuple):
    """The place of a workspace: a shard of the first table, with those of all others beside it."""

    shard: int
    node: Node


def place_of(url: str, workspace_id: int) -> Place:
    """Returns the shard and the node of a workspace."""
    ((shard, host, port),) = _asked(url, PLACE, [workspace_id])
    return Place(shard, Node(host, port))


def workers(url: str) -> list[Node]:
    """Returns the nodes that have shards."""
    return [Node(host, port) for host, port in _asked(url, WORKERS)]


def move(url: str, place: Place, to: Node) -> float:
    """Moves a shard to another node while it is read and written; returns the seconds."""
    started = time.perf_counter()
    _asked(url, MOVE, [place.shard, *place.node, *to])
    return time.perf_counter() - started


@contextmanager
def plain_database(url: str) -> Iterator[str]:
    """Yields the URL of a database on the coordinator's server alone, and drops it at the end."""
    name = f"priors_{uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL(CREATE).format(sql.Identifier(name), sql.Identifier(EMPTY)))
    try:
        yield make_url(url).set(database=name).render_as_string(hide_password=False)
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


class Server:
    """The processes of one Postgres on this machine."""

    def __init__(self, url: str, node: Node | None = None) -> None:
        given = make_url(url)
        own = given.set(host=node.host, port=node.port) if node else given
        self.url = own.render_as_string(hide_password=False)
        self._remember()
        self._program, self._folder = Path(self._process.exe()), Path(self._process.cwd())
        self._user = self._process.uids().real

    def _remember(self) -> None:
        with psycopg.connect(self.url) as connection:
            self._process = psutil.Process(connection.info.backend_pid).parent()

    def cpu_seconds(self) -> float:
        """Returns the time of processors that it has taken, ended processes included."""
        total = sum(self._process.cpu_times()[:4])
        for child in self._process.children():
            try:
                total += sum(child.cpu_times()[:2])
            except psutil.NoSuchProcess:
                continue
        return float(total)

    def kill(self) -> None:
        """Kills the server and all its processes at once, as the end of a machine does."""
        family = [self._process, *self._process.children()]
        for process in family:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        while any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in family):
            time.sleep(DEAD_PAUSE_SECONDS)

    def start(self) -> None:
        """Starts it again and waits until it answers."""
        program, log = str(self._program.with_name("pg_ctl")), str(self._folder / "log")
        words = [program, "-D", str(self._folder), "-l", log, "-w", "start"]
        subprocess.run(words, user=self._user, cwd="/", check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self._remember()


def _asked(url: str, statement: str, values: Sequence[Any] = ()) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(statement.encode(), values).fetchall()
