"""The server process of the embedded Postgres: found, started, proved to answer, stopped."""

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

import psycopg
from psycopg import sql

from app.errors import ConfigurationError, DatabaseUnavailable
from app.postgres.cluster import SUPERUSER, Cluster, binary, check_reachable, environment, reason, settings_files

START_SECONDS = 60.0
"""Longest wait for a server that says nothing; one that says it is recovering gets this time again and again."""
STOP_SECONDS = 120.0
"""Longest wait for a fast shutdown: its checkpoint writes at most the shared buffers, 1 GB."""
DEAF_SECONDS = 3.0
"""How long a server may run without its socket; it makes that within milliseconds of its start."""
SOCKET_NAME = ".s.PGSQL.5432"
SOCKET_PATH_BYTES = 103
"""Longest path of a socket: 103 bytes on macOS, 107 on Linux."""

_MEMORY_IN_USE = "shared memory block"
# What Postgres says while it is alive and will answer later, and when an earlier server is not wholly gone.
_WORKING = ("starting up", "shutting down", "recovery mode", "not yet accepting")
_PASSING = (
    *_WORKING,
    *("too many clients", "connection slots", "terminating connection", "lock file", _MEMORY_IN_USE),
)
# Above every pid that a kernel gives out, so never one that lives.
_NO_PID = "2147483647"
_LOG_TAIL_BYTES = 1 << 16
_PID_LINE, _SOCKET_LINE = 0, 4
_PROC = Path("/proc/self/stat")
# Run as the cluster's account, which may look at its own processes where a container's root may not.
_END_ORPHANS = """
for process in /proc/[0-9]*; do
    [ "$process/cwd" -ef . ] && read -r name < "$process/comm" && [ "$name" = postgres ] || continue
    kill -QUIT "${process#/proc/}"
done
:
"""


class Postmaster:
    """The server of one cluster. Only one process at a time may call it: the callers hold a lock."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._socket_folder = socket_folder(cluster.folder)
        self._log_folder = cluster.folder / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None
        self._last_words = ""

    def bring_up(self, database: str) -> str:
        """Start the server unless it runs, make the database unless it is there; returns its URL once it answers.

        Raises:
            DatabaseUnavailable: the server ended by itself, refuses, or said nothing for `START_SECONDS`.
            ConfigurationError: its account cannot reach what it needs.
        """
        deadline, pause = time.monotonic() + START_SECONDS, 0.01
        while (refusal := self._refusal(database)) is not None:
            if _says(refusal, _WORKING):
                deadline = time.monotonic() + START_SECONDS
            elif "FATAL" in refusal and not _says(refusal, _PASSING):
                raise DatabaseUnavailable(f"Postgres refuses a connection: {reason(refusal.encode())}")
            self._end_a_deaf_one()
            # Who answers is alive, also where its pid says nothing: a container may share the data with another.
            if "FATAL" not in refusal and "timeout expired" not in refusal:
                self._launch_unless_running()
            if time.monotonic() > deadline:
                why = self._last_words or reason(refusal.encode())
                raise DatabaseUnavailable(f"Postgres does not answer: {why} (its log is in {self._log_folder})")
            time.sleep(pause)
            pause = min(pause * 1.5, 0.5)
        self._forget_said()
        return self._url(database)

    def shut_down(self) -> None:
        """Stop the server by a fast shutdown: open transactions are rolled back, all that was committed is on disk.

        Raises:
            DatabaseUnavailable: it is still at it after `STOP_SECONDS`.
        """
        pid = self._running() or (self._process.pid if self._process and self._launched() else 0)
        if pid:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)
            self._wait_until_gone()
            if self._socket_folder != self._cluster.folder:
                with suppress(OSError):
                    self._socket_folder.rmdir()
        self._forget_said()

    def _wait_until_gone(self) -> None:
        deadline = time.monotonic() + STOP_SECONDS
        while self._launched() or self._running():
            if time.monotonic() > deadline:
                raise DatabaseUnavailable("Postgres is still writing its last checkpoint; it ends by itself")
            time.sleep(0.01)

    def _url(self, database: str) -> str:
        host = quote(str(self._socket_folder), safe="")
        return f"postgresql://{SUPERUSER}@/{quote(database, safe='')}?host={host}&port=5432"

    def _refusal(self, database: str) -> str | None:
        """Why no query is answered; None where one is, and the database is there."""
        self._follow_the_running_one()
        try:
            with psycopg.connect(self._url(SUPERUSER), autocommit=True, connect_timeout=10) as connection:
                _make_database(connection, database)
        except psycopg.Error as error:
            # What fails without an SQLSTATE is the connection; 57P is the class of a server that is going down.
            if error.sqlstate and not error.sqlstate.startswith("57P"):
                raise DatabaseUnavailable(f"the database {database} cannot be made: {error}") from error
            return str(error)
        return None

    def _follow_the_running_one(self) -> None:
        """A server that was started with another TMPDIR has its socket there."""
        lines = self._pid_lines()
        if len(lines) > _SOCKET_LINE and lines[_SOCKET_LINE].startswith("/") and self._running():
            self._socket_folder = Path(lines[_SOCKET_LINE])

    def _end_a_deaf_one(self) -> None:
        """A server whose socket was deleted, by a cleaner of temporary files or an old server, has to make it anew."""
        if self._running() and not (self._socket_folder / SOCKET_NAME).exists():
            with suppress(FileNotFoundError):
                started = (self._cluster.folder / "postmaster.pid").stat().st_mtime
                if time.time() - started > DEAF_SECONDS:
                    self.shut_down()

    def _launch_unless_running(self) -> None:
        if self._launched() or self._running():
            return
        self._check_exit()
        self._disown_stale_files()
        _make_private(self._socket_folder, self._cluster)
        self._cluster.write(settings_files(self._cluster, self._socket_folder))
        self._launch()

    def _launch(self) -> None:
        # In a session of its own: neither Ctrl-C at a terminal nor the end of this process reaches it.
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - read after the process has ended
        self._process = subprocess.Popen(  # noqa: S603 - the wheel's program, with arguments of our own
            self._cluster.command([str(binary("postgres")), "-D", str(self._cluster.folder)], self._cluster.folder),
            cwd=self._cluster.folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=self._said,
            start_new_session=True,
        )
        # Reaped at once, or a killed server would stay a zombie whose pid looks alive to the next one.
        threading.Thread(target=self._process.wait, name="postgres-reaper", daemon=True).start()

    def _launched(self) -> bool:
        """Whether the server that this process started lives."""
        return self._process is not None and self._process.poll() is None

    def _check_exit(self) -> None:
        """Raises the reason of a server that ended by itself, unless the reason passes."""
        if self._process is None or self._said is None:
            return
        self._said.seek(0)
        said, code = self._said.read(), self._process.returncode
        self._forget_said()
        check_reachable(code, said)
        self._last_words = reason(said if b"FATAL" in said else self._log_of_this_start())
        if code not in {0, -signal.SIGKILL} and not _says(self._last_words, _PASSING):
            raise DatabaseUnavailable(f"Postgres did not start: {self._last_words} (its log is in {self._log_folder})")
        if _MEMORY_IN_USE in self._last_words:
            # A session of the killed server that is busy does not notice; what it has not committed is lost anyway.
            self._cluster.run(["/bin/sh", "-c", _END_ORPHANS])

    def _forget_said(self) -> None:
        if self._said is not None:
            self._said.close()
            self._said = None

    def _log_of_this_start(self) -> bytes:
        """What the server has said since it began, without its answers to those who came too early."""
        logs = [path for path in self._log_folder.glob("*.log") if not path.is_symlink()]
        if not logs:
            return b""
        newest = max(logs, key=lambda path: path.stat().st_mtime)
        with newest.open("rb") as log:
            log.seek(max(0, newest.stat().st_size - _LOG_TAIL_BYTES))
            lines = log.read().rpartition(b"starting PostgreSQL")[2].splitlines()
        return b"\n".join(line for line in lines if not _says(line.decode(errors="replace"), _WORKING))

    def _pid_lines(self) -> list[str]:
        try:
            return (self._cluster.folder / "postmaster.pid").read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return []

    def _running(self) -> int:
        """The pid of this cluster's running server; 0 where there is none."""
        lines = self._pid_lines()
        pid = int(lines[_PID_LINE]) if lines and lines[_PID_LINE].isdecimal() else 0
        return pid if pid and _is_postgres_in(self._cluster.folder, pid) else 0

    def _disown_stale_files(self) -> None:
        """Let go of lock files whose pid another program may have by now: Postgres would take that for a server.

        The rest of postmaster.pid stays: by it Postgres finds, and waits for, orphans of the old server.
        """
        if (self._cluster.folder / "postmaster.pid").exists():
            lines = self._pid_lines()
            if lines and lines[_PID_LINE].isdecimal():
                self._cluster.write({"postmaster.pid": "\n".join([_NO_PID, *lines[1:], ""])})
            else:
                self._cluster.remove(self._cluster.folder / "postmaster.pid")
        socket_lock = self._socket_folder / f"{SOCKET_NAME}.lock"
        if socket_lock.exists():
            self._cluster.remove(socket_lock)


def socket_folder(cluster: Path) -> Path:
    """Where the socket lies: in the cluster, or in a folder of the system's where that path is not one for a socket.

    It may be too long, or hold what libpq and the settings file read otherwise (a comma makes a list).
    """
    name = "priors-" + hashlib.sha256(os.fsencode(cluster)).hexdigest()[:16]
    last = Path("/tmp") / name  # noqa: S108 - private by its mode, which is checked before use
    return next(path for path in (cluster, Path(tempfile.gettempdir()) / name, last) if path == last or _fits(path))


def _fits(folder: Path) -> bool:
    short = len(os.fsencode(folder / SOCKET_NAME)) <= SOCKET_PATH_BYTES
    return short and str(folder).isprintable() and not any(mark in str(folder) for mark in ',"\\')


def _make_private(folder: Path, cluster: Cluster) -> None:
    """Make the socket's folder where it is not the cluster; refuse one that somebody else made or can open."""
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


def _says(text: str, phrases: tuple[str, ...]) -> bool:
    return any(phrase in text for phrase in phrases)


def _is_postgres_in(folder: Path, pid: int) -> bool:
    """Whether the process is a living Postgres of this cluster: a server's working directory is its cluster."""
    if not _PROC.exists():
        return _name_from_ps(pid).endswith("postgres")
    try:
        return Path(f"/proc/{pid}/cwd").samefile(folder)
    except PermissionError:  # root without CAP_SYS_PTRACE, as in a container, may not look
        return _name_from_proc(pid) == "postgres"
    except OSError:
        return False


def _name_from_proc(pid: int) -> str:
    """The program's name; "" where there is no such process or it is a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return ""
    name, _, rest = text.partition("(")[2].rpartition(")")
    return "" if rest.split()[0] in {"Z", "X"} else name


def _name_from_ps(pid: int) -> str:
    """The same on a system without /proc."""
    listed = subprocess.run(  # noqa: S603 - a number is its only argument
        ["/bin/ps", "-p", str(pid), "-o", "state=", "-o", "comm="], capture_output=True, text=True, check=False
    )
    return "" if listed.stdout.startswith("Z") else listed.stdout.strip()
