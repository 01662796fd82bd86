"""Finds, starts, probes and stops the server process of the embedded Postgres."""

import hashlib
import os
import signal
import stat
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO
from urllib.parse import quote

import psutil  # type: ignore[import-untyped]  # it has no types
import psycopg
from psycopg import sql

from app.errors import ConfigurationError, DatabaseUnavailable
from app.foundation.db.pool import MAKE_LOGIN
from app.foundation.postgres.cluster import (
    SUPERUSER,
    DataDirectory,
    binary,
    environment,
    part,
    reason,
    settings_files,
)

_START_SECONDS = 60.0
"""Longest wait for a server that does not answer. Each answer that it is still recovering starts the time again."""
_STOP_SECONDS = 120.0
"""Longest wait for a fast shutdown, whose checkpoint writes at most the shared buffers, 1 GB."""
_SOCKETLESS_SECONDS = 3.0
"""Seconds that a server may run without its socket, which it makes within milliseconds."""
SOCKET_NAME = ".s.PGSQL.5432"
_SOCKET_PATH_BYTES = 103
"""Longest path of a socket, in bytes: 103 on macOS, 107 on Linux."""

_MEMORY_IN_USE = "shared memory block"
# Messages of a server that will answer later, and of one whose predecessor has not quite ended.
_BUSY = ("starting up", "shutting down", "recovery mode", "not yet accepting", "Hot standby mode is disabled")
_TRANSIENT = (*_BUSY, "too many clients", "connection slots", "terminating connection", "lock file", _MEMORY_IN_USE)
# Greater than every pid of a kernel, so never a living process.
_UNUSED_PID = "2147483647"
_LOG_TAIL_BYTES = 1 << 16
_PID_LINE, _SOCKET_LINE = 0, 4


class Postmaster:
    """The server of one cluster. Its callers hold a lock, so that only one process at a time uses it."""

    def __init__(self, cluster: DataDirectory) -> None:
        self._cluster = cluster
        self._socket_folder = socket_folder(cluster.folder)
        self._log_folder = cluster.folder / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None
        self._last_error = ""

    def bring_up(self, database: str) -> str:
        """Starts the server and makes the database, each unless done; returns the URL once a query is answered.

        Raises:
            DatabaseUnavailable: the server ended by itself, refuses, or did not answer for `_START_SECONDS`.
            ConfigurationError: its account cannot reach a path that it needs.
        """
        deadline, pause = time.monotonic() + _START_SECONDS, 0.01
        while (refusal := self._refusal(database)) is not None:
            if _mentions(refusal, _BUSY):
                deadline = time.monotonic() + _START_SECONDS
            elif "FATAL" in refusal and not _mentions(refusal, _TRANSIENT):
                raise DatabaseUnavailable(f"Postgres refuses a connection: {reason(refusal.encode())}")
            self._stop_without_socket()
            # A server that answers is alive even if its pid is unknown here: containers may share the data.
            if "FATAL" not in refusal and "timeout expired" not in refusal:
                self._launch_unless_running()
            if time.monotonic() > deadline:
                why = self._last_error or reason(refusal.encode())
                raise DatabaseUnavailable(f"Postgres does not answer: {why} (its log is in {self._log_folder})")
            time.sleep(pause)
            pause = min(pause * 1.5, 0.5)
        self._drop_output()
        return self.url(database)

    def shut_down(self) -> None:
        """Stops the server by a fast shutdown: open transactions are rolled back, committed ones are on disk.

        Raises:
            DatabaseUnavailable: it still runs after `_STOP_SECONDS`.
        """
        pid = self._running() or (self._process.pid if self._process and self._runs_here() else 0)
        if pid:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)
            self._wait_for_end()
            if self._socket_folder != self._cluster.folder:
                with suppress(OSError):
                    self._socket_folder.rmdir()
        self._drop_output()

    def _wait_for_end(self) -> None:
        deadline = time.monotonic() + _STOP_SECONDS
        while self._runs_here() or self._running():
            if time.monotonic() > deadline:
                raise DatabaseUnavailable("Postgres is still writing its last checkpoint; it ends by itself")
            time.sleep(0.01)

    def url(self, database: str, *, role: str = SUPERUSER) -> str:
        """Returns the libpq URL of a database for this role."""
        host = quote(str(self._socket_folder), safe="")
        return f"postgresql://{role}@/{quote(database, safe='')}?host={host}&port=5432"

    def _refusal(self, database: str) -> str | None:
        """Makes the database if it is missing, and returns None; returns the reason if the server answers no query."""
        self._find_running_socket()
        try:
            with psycopg.connect(self.url(SUPERUSER), autocommit=True, connect_timeout=10) as connection:
                _make_database(connection, database)
                connection.execute(MAKE_LOGIN)
        except psycopg.Error as error:
            # Without an SQLSTATE the connection failed; 57P is the class of a server that is shutting down.
            if error.sqlstate and not error.sqlstate.startswith("57P"):
                raise DatabaseUnavailable(f"the database {database} cannot be made: {error}") from error
            return str(error)
        return None

    def _find_running_socket(self) -> None:
        """Reads where a running server has its socket: one that was started with another TMPDIR has it there."""
        lines = self._pid_lines()
        if len(lines) > _SOCKET_LINE and lines[_SOCKET_LINE].startswith("/") and self._running():
            self._socket_folder = Path(lines[_SOCKET_LINE])

    def _stop_without_socket(self) -> None:
        """Stops a server whose socket was deleted, for instance by a cleaner of temporary files."""
        if self._running() and not (self._socket_folder / SOCKET_NAME).exists():
            with suppress(FileNotFoundError):
                started = (self._cluster.folder / "postmaster.pid").stat().st_mtime
                if time.time() - started > _SOCKETLESS_SECONDS:
                    self.shut_down()

    def _launch_unless_running(self) -> None:
        if self._runs_here() or self._running():
            return
        self._check_exit()
        self._remove_stale_locks()
        _make_private(self._socket_folder, self._cluster)
        self._cluster.write(settings_files(self._cluster, self._socket_folder))
        self._launch()

    def _launch(self) -> None:
        # In a new session, so that neither Ctrl-C at a terminal nor the end of this process reaches it.
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - read after the process has ended
        self._process = subprocess.Popen(  # noqa: S603 - the wheel's program, with arguments of our own
            self._cluster.command([str(binary("postgres")), "-D", str(self._cluster.folder)], self._cluster.folder),
            cwd=self._cluster.folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
            start_new_session=True,
        )
        # A killed server is reaped at once; as a zombie its pid would look alive.
        threading.Thread(target=self._process.wait, name="postgres-reaper", daemon=True).start()

    def _runs_here(self) -> bool:
        """Tells if the server that this process started is running."""
        return self._process is not None and self._process.poll() is None

    def _check_exit(self) -> None:
        """Raises the reason why a server ended by itself, unless it is transient."""
        if self._process is None or self._output is None:
            return
        self._output.seek(0)
        output, code = self._output.read(), self._process.returncode
        self._drop_output()
        self._last_error = reason(output if b"FATAL" in output else self._latest_log())
        if code not in {0, -signal.SIGKILL} and not _mentions(self._last_error, _TRANSIENT):
            raise DatabaseUnavailable(f"Postgres did not start: {self._last_error} (its log is in {self._log_folder})")
        if _MEMORY_IN_USE in self._last_error:
            # A busy session of the killed server does not notice its end; its uncommitted work is lost anyway.
            self._cluster.run(["/bin/sh", "-c", part("end_orphans.sh")])

    def _drop_output(self) -> None:
        if self._output is not None:
            self._output.close()
            self._output = None

    def _latest_log(self) -> bytes:
        """Returns the log since the last start, without the answers to clients that came too early."""
        logs = [path for path in self._log_folder.glob("*.log") if not path.is_symlink()]
        if not logs:
            return b""
        newest = max(logs, key=lambda path: path.stat().st_mtime)
        with newest.open("rb") as log:
            log.seek(max(0, newest.stat().st_size - _LOG_TAIL_BYTES))
            lines = log.read().rpartition(b"starting PostgreSQL")[2].splitlines()
        return b"\n".join(line for line in lines if not _mentions(line.decode(errors="replace"), _BUSY))

    def _pid_lines(self) -> list[str]:
        try:
            return (self._cluster.folder / "postmaster.pid").read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return []

    def _running(self) -> int:
        """Returns the pid of this cluster's running server; 0 if there is none."""
        lines = self._pid_lines()
        pid = int(lines[_PID_LINE]) if lines and lines[_PID_LINE].isdecimal() else 0
        return pid if pid and _is_postgres_in(self._cluster.folder, pid) else 0

    def _remove_stale_locks(self) -> None:
        """Clears a dead server's lock files: another program may have its pid by now, and pass for a server.

        The rest of postmaster.pid stays, because Postgres uses it to find and await orphans of the old server.
        """
        if (self._cluster.folder / "postmaster.pid").exists():
            lines = self._pid_lines()
            if lines and lines[_PID_LINE].isdecimal():
                self._cluster.write({"postmaster.pid": "\n".join([_UNUSED_PID, *lines[1:], ""])})
            else:
                self._cluster.remove(self._cluster.folder / "postmaster.pid")
        socket_lock = self._socket_folder / f"{SOCKET_NAME}.lock"
        if socket_lock.exists():
            self._cluster.remove(socket_lock)


def socket_folder(cluster: Path) -> Path:
    """Returns the socket's folder: the cluster, or a temporary folder if the cluster's path does not suit a socket.

    A path does not suit if it is too long, or has characters with a meaning for libpq or the settings file (a comma
    separates a list).
    """
    name = "priors-" + hashlib.sha256(os.fsencode(cluster)).hexdigest()[:16]
    last = Path("/tmp") / name  # noqa: S108 - private by its mode, which is checked before use
    return next(path for path in (cluster, Path(tempfile.gettempdir()) / name, last) if path == last or _fits(path))


def _fits(folder: Path) -> bool:
    short = len(os.fsencode(folder / SOCKET_NAME)) <= _SOCKET_PATH_BYTES
    return short and str(folder).isprintable() and not any(mark in str(folder) for mark in ',"\\')


def _make_private(folder: Path, cluster: DataDirectory) -> None:
    """Makes the socket's folder if it is not the cluster; refuses a folder that another user made or can open."""
    if folder == cluster.folder:
        return
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    mine = found.st_uid in {cluster.account.uid, os.geteuid()}
    if not stat.S_ISDIR(found.st_mode) or not mine or stat.S_IMODE(found.st_mode) & 0o077:
        raise ConfigurationError(f"{folder}, for the database's socket, is not a private folder: remove it")
    if cluster.account.switched:
        os.chown(folder, cluster.account.uid, cluster.account.gid, follow_symlinks=False)


def _make_database(connection: psycopg.Connection, name: str) -> None:
    if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


def _mentions(text: str, phrases: tuple[str, ...]) -> bool:
    return any(phrase in text for phrase in phrases)


def _is_postgres_in(folder: Path, pid: int) -> bool:
    """Tells if a process is a living Postgres of this cluster: a server's working directory is its cluster."""
    try:
        process = psutil.Process(pid)
        try:
            # psutil names a deleted folder as if it were there; the kernel's link leads to the folder itself.
            return folder.samefile(f"/proc/{pid}/cwd" if psutil.LINUX else process.cwd())
        except (psutil.AccessDenied, PermissionError):  # as for a container's root without CAP_SYS_PTRACE
            return bool(process.name() == "postgres" and process.status() != psutil.STATUS_ZOMBIE)
    except (psutil.Error, OSError):
        return False
