"""The embedded Postgres: a server of the wheel's own binaries, shared by every Priors process on one data directory.

Who uses it is known by kernel locks alone. Each user holds a shared lock on `postgres.users`; the one that can turn
its own into an exclusive lock when it leaves is the last, and stops the server. The kernel gives up the lock of a
process that was killed. A second lock, on `postgres.lock`, lets only one process at a time start or stop.
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
from app.postgres.cluster import ELSEWHERE, Cluster
from app.postgres.postmaster import Postmaster

TURN_SECONDS = 300.0
"""Longest wait while another process starts or stops the server: a crash recovery may go on for minutes."""

_FULL = {errno.ENOSPC, errno.EDQUOT}


class EmbeddedPostgres:
    """One process' share in the Postgres of a data directory. Blocking: an event loop calls it in a thread.

    A process that exits without `stop` gives its share up then; one that is killed may leave the server running, and
    the next user takes it over.
    """

    def __init__(self, data_dir: Path, *, database: str = "priors") -> None:
        self._data_dir = Path(os.path.realpath(data_dir))
        self._database = database
        self._guard = threading.Lock()
        self._share: _FileLock | None = None
        self._postmaster: Postmaster | None = None
        self._pid = os.getpid()

    def start(self) -> str:
        """Take a share, start the server unless it runs, make the database unless it is there; give its libpq URL.

        Again in the same process: brings the server back if it was killed, and gives the same URL.

        Raises:
            ConfigurationError: the data directory cannot be used; the message says what to do.
            DatabaseUnavailable: Postgres cannot be made or started; the message holds its reason.
        """
        with self._guard, _readable_errors(self._data_dir):
            self._forget_a_parents_share()
            _prepare(self._data_dir)
            with self._turn():
                had_share = self._share is not None
                self._take_share()
                try:
                    return self._bring_up()
                except BaseException:
                    if not had_share:
                        with suppress(DatabaseUnavailable):
                            self._leave()
                    raise

    def stop(self) -> None:
        """Give up this process' share; the last one to do so stops the server. Without a share: does nothing.

        Raises:
            DatabaseUnavailable: the server was told to stop and is still at it, or another process holds the turn.
        """
        with self._guard:
            self._forget_a_parents_share()
            if self._share is None:
                return
            try:
                # A server whose folder was deleted ends by itself.
                with suppress(FileNotFoundError), self._turn():
                    self._leave()
            finally:
                self._drop_share()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _bring_up(self) -> str:
        cluster = Cluster(self._data_dir / "postgres")
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
        """With the turn held, so that nobody becomes a user between the two steps."""
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

    def _forget_a_parents_share(self) -> None:
        """After a fork the share is the parent's: to unlock it here would take it from the parent."""
        if self._pid != os.getpid():
            if self._share is not None:
                self._share.close()
            self._pid, self._share, self._postmaster = os.getpid(), None, None

    @contextmanager
    def _turn(self) -> Iterator[None]:
        lock = _FileLock(self._data_dir / "postgres.lock")
        try:
            deadline = time.monotonic() + TURN_SECONDS
            while not lock.take(fcntl.LOCK_EX):
                if time.monotonic() > deadline:
                    raise DatabaseUnavailable(f"another process holds {lock.path} since {TURN_SECONDS:.0f} s or more")
                time.sleep(0.02)
            yield
        finally:
            lock.drop()


class _FileLock:
    """A kernel lock on a file; gone with its process, however that ends. Programs it starts do not inherit it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        if os.geteuid() == 0:
            os.fchown(self._file, path.parent.stat().st_uid, -1)

    def take(self, kind: int) -> bool:
        """Take or change the lock without waiting; False where another process' lock is in the way."""
        try:
            fcntl.flock(self._file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def drop(self) -> None:
        """Unlock first: closing alone would leave the lock to a fork that shares the open file."""
        fcntl.flock(self._file, fcntl.LOCK_UN)
        self.close()

    def close(self) -> None:
        """Let go of the file; the lock stays with whoever else has it open."""
        os.close(self._file)


def _prepare(data_dir: Path) -> None:
    """Make the data directory; keep a fresh or hidden one out of any repository that it lies in."""
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
        if error.errno in _FULL:
            raise DatabaseUnavailable(f"the embedded Postgres has no room on its disk: {reason}") from error
        raise ConfigurationError(f"the data directory {data_dir} cannot be used ({reason}): {ELSEWHERE}") from error
