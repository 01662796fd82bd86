"""What systems in this process have in common: folder, embedder, and the memory that they add to it."""

import os
from pathlib import Path

import psycopg

from benchmarks.peers.embedder import Embedder
from benchmarks.peers.space import family, folder_megabytes, postmaster, resident_megabytes
from benchmarks.peers.system import Footprint


class Local:
    """A system in this process, and the Postgres that it may use."""

    def __init__(self, folder: Path, embedder: Embedder, *, postgres: str = "") -> None:
        self._folder, self._embedder = folder, embedder
        self._postgres = postgres
        """Its URL; empty: it has none."""

    def settle(self) -> None:
        """What autovacuum does within a minute."""
        if self._postgres:
            with psycopg.connect(self._postgres, autocommit=True) as connection:
                connection.execute("VACUUM ANALYZE")

    def footprint(self) -> Footprint:
        """The whole of this process: whoever measures takes off what it had before."""
        pids = [os.getpid()]
        if self._postgres:
            pids += family(postmaster(self._folder))
        return Footprint(disk=folder_megabytes(self._folder), resident=resident_megabytes(pids))
