"""A Postgres behind a network link of its own, which can be cut. It needs root."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.foundation.db.migrations import upgrade
from app.foundation.postgres.cluster import SUPERUSER, DataDirectory, binary
from app.foundation.postgres.embedded import EmbeddedPostgres

# Of this process alone, so that two can run at once.
NAME = f"chaos-{os.getpid()}"
SUBNET = f"10.{192 + os.getpid() // 256 % 64}.{os.getpid() % 256}"
HERE, THERE = f"{SUBNET}.1", f"{SUBNET}.2"
NOBODY = "02:00:00:00:00:01"
ACCESS_FILE = "chaos_hba.conf"
ACCESS = f"local all all trust\nhost all all {SUBNET}.0/30 trust\n"


class Link:
    """The way to a Postgres in a network namespace."""

    def __init__(self, data: Path) -> None:
        self._data = data

    @property
    def url(self) -> str:
        """The address of the database, over TCP."""
        return f"postgresql://{SUPERUSER}@{THERE}:5432/priors"

    @property
    def command(self) -> list[str]:
        """The command that runs Postgres there."""
        folder = self._data / "postgres"
        access = f"hba_file={folder / ACCESS_FILE}"
        server = [str(binary("postgres")), "-D", str(folder), "-h", THERE, "-c", access]
        return ["ip", "netns", "exec", NAME, *DataDirectory(folder).command(server, folder)]

    def make(self) -> None:
        """Makes the database with its schema, without the network."""
        with EmbeddedPostgres(self._data) as server:
            upgrade(server.start())
        DataDirectory(self._data / "postgres").write({ACCESS_FILE: ACCESS})

    def cut(self) -> None:
        """Drops every packet from now on, and tells neither side: both send to an address that nobody has."""
        _ip("neigh", "replace", THERE, "lladdr", NOBODY, "nud", "permanent", "dev", NAME)
        _ip("-netns", NAME, "neigh", "replace", HERE, "lladdr", NOBODY, "nud", "permanent", "dev", "eth0")

    def mend(self) -> None:
        """Lets packets through again."""
        _ip("neigh", "del", THERE, "dev", NAME)
        _ip("-netns", NAME, "neigh", "del", HERE, "dev", "eth0")


def can_be_made() -> bool:
    """Tells if this process may make a network namespace."""
    try:
        with _namespace():
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


@contextmanager
def linked(data: Path) -> Iterator[Link]:
    """Yields a link to a Postgres with its data in this folder, and takes the namespace away at the end."""
    with _namespace():
        link = Link(data)
        link.make()
        yield link


@contextmanager
def _namespace() -> Iterator[None]:
    _ip("netns", "add", NAME)
    try:
        _ip("link", "add", NAME, "type", "veth", "peer", "name", "eth0", "netns", NAME)
        _ip("addr", "add", f"{HERE}/30", "dev", NAME)
        _ip("link", "set", NAME, "up")
        _ip("-netns", NAME, "addr", "add", f"{THERE}/30", "dev", "eth0")
        _ip("-netns", NAME, "link", "set", "eth0", "up")
        yield
    finally:
        _ip("netns", "del", NAME)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)
