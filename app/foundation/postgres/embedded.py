"""The embedded Postgres: a server from the wheel's binaries, shared by every Priors process on one data directory.

Kernel locks alone tell who uses it. Each process holds a shared lock on `postgres.users`. When it leaves it tries to
make that lock exclusive; if it can, it was the last process and stops the server. The kernel releases the lock of a
killed process. A second lock, on `postgres.lock`, lets only one process at a time start or stop the server.
"""

import atexit
import errno
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from app.errors import ConfigurationError, DatabaseUnavailable
from app.foundation.db.pool import LOGIN
from app.foundation.postgres.cluster import ELSEWHERE, DataDirectory
from app.foundation.postgres.postmaster import Postmaster

_LOCK_SECONDS = 300.0
"""Longest wait while another process starts or stops the server: a crash recovery may take minutes."""

_DISK_FULL = {errno.ENOSPC, errno.EDQUOT}


class EmbeddedPostgres:
    """One process' share in the Postgres of a data directory. Its methods block: an event loop calls them in a thread.

    A process that exits without `stop` gives up its share then. A killed process may leave the server running; the next
    process takes it over.
    """

    def __init__(self, data_dir: Path, *, database: str = "priors") -> None:
        self._data_dir = Path(os.path.realpath(data_dir))
        self._database = database
        self._guard = threading.Lock()
        self._share: _FileLock | None = None
        self._postmaster: Postmaster | None = None

    def start(self) -> str:
        """Takes a share, starts the server and makes the database, each unless done; returns the superuser's URL.

        A second call in the same process restarts a killed server and returns the same URL.

        Raises:
            ConfigurationError: the data directory cannot be used; the message says what to do.
            DatabaseUnavailable: Postgres cannot be made or started; the message has the reason.
        """
        with self._guard, _readable_errors(self._data_dir):
            _prepare(self._data_dir)
            with self._exclusive():
                had_share = self._share is not None
                self._take_share()
                try:
                    return self._bring_up()
                except BaseException:
                    if not had_share:
                        with suppress(DatabaseUnavailable):
                            self._leave()
                    raise

    @property
    def service_url(self) -> str:
        """The libpq URL of the role that serves: it is no superuser and owns nothing.

        Raises:
            DatabaseUnavailable: the server was not started.
        """
        if self._postmaster is None:
            raise DatabaseUnavailable("the embedded Postgres was not started")
        return self._postmaster.url(self._database, role=LOGIN)

    def stop(self) -> None:
        """Gives up this process' share; the last process to do so stops the server. Does nothing without a share.

        Raises:
            DatabaseUnavailable: the server has not stopped yet, or another process is starting or stopping it.
        """
        with self._guard:
            if self._share is None:
                return
            try:
                # A server whose folder was deleted stops by itself.
                with suppress(FileNotFoundError), self._exclusive():
                    self._leave()
            finally:
                self._drop_share()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _bring_up(self) -> str:
        cluster = DataDirectory(self._data_dir / "postgres")
        cluster.ensure()
        if self._postmaster is None:
            self._postmaster = Postmaster(cluster)
        return self._postmaster.bring_up(self._database)

    def _take_share(self) -> None:
        if self._share is None:
            share = _FileLock(self._data_dir / "postgres.users")
            if not share.take(fcntl.LOCK_SH):
                share.drop()
                raise DatabaseUnavailable(f"{share.path} is locked by a program that is not Priors")
            self._share = share
            atexit.register(self.stop)

    def _leave(self) -> None:
        """Stops the server if no other process uses it. The caller holds `_exclusive`, so that none joins meanwhile."""
        try:
            if self._share and self._share.take(fcntl.LOCK_EX) and self._postmaster:
                self._postmaster.shut_down()
        finally:
            self._drop_share()

    def _drop_share(self) -> None:
        if self._share is not None:
            self._share.drop()
            atexit.unregister(self.stop)
        self._share = self._postmaster = None

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Keeps other processes from starting or stopping the server."""
        lock = _FileLock(self._data_dir / "postgres.lock")
        try:
            deadline = time.monotonic() + _LOCK_SECONDS
            while not lock.take(fcntl.LOCK_EX):
                if time.monotonic() > deadline:
                    raise DatabaseUnavailable(f"another process holds {lock.path} since {_LOCK_SECONDS:.0f} s or more")
                time.sleep(0.02)
            yield
        finally:
            lock.drop()


class _FileLock:
    """A kernel lock on a file. It ends with its process in any case; child programs do not inherit it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        if os.geteuid() == 0:
            os.fchown(self._file, path.parent.stat().st_uid, -1)

    def take(self, kind: int) -> bool:
        """Takes or changes the lock without waiting; returns False if another process' lock prevents it."""
        try:
            fcntl.flock(self._file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def drop(self) -> None:
        """Unlocks, then closes: after closing alone, a fork that shares the open file would keep the lock."""
        fcntl.flock(self._file, fcntl.LOCK_UN)
        os.close(self._file)


def _prepare(data_dir: Path) -> None:
    """Makes the data directory; if it is new or hidden, keeps it out of the Git repository around it."""
    if data_dir.exists() and not data_dir.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(data_dir))
    data_dir.mkdir(parents=True, exist_ok=True)
    ignore = data_dir / ".gitignore"
    ours = data_dir.name.startswith(".") or not any(data_dir.iterdir())
    if ours and not ignore.exists() and not (data_dir / ".git").exists():
        ignore.write_text("*\n")


@contextmanager
def _readable_errors(data_dir: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = f"{error.filename or data_dir}: {error.strerror or error}"
        if error.errno in _DISK_FULL:
            raise DatabaseUnavailable(f"the embedded Postgres has no room on its disk: {reason}") from error
        raise ConfigurationError(f"the data directory {data_dir} cannot be used ({reason}): {ELSEWHERE}") from error
