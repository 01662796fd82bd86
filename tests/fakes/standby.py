"""A streaming replica of an embedded Postgres, made by pg_basebackup."""

import pwd
import subprocess
from pathlib import Path

import psycopg

from app.foundation.db.pool import LOGIN
from app.foundation.postgres.cluster import SUPERUSER, DataDirectory, binary, environment, settings_files
from app.foundation.postgres.postmaster import SOCKET_NAME

DATABASE = "priors"
IDENT = "priors_ident.conf"


class Standby:
    """One replica, in a folder of its own. It may be killed, started again, and promoted."""

    def __init__(self, primary: Path, url: str, folder: Path) -> None:
        """Copies the cluster in the folder `primary`, whose superuser's URL this is."""
        original = DataDirectory(primary)
        account = pwd.getpwuid(original.account.uid).pw_name
        # Where the kernel confirms who connects, the account of a replica must be known, too.
        original.write({IDENT: f"{(primary / IDENT).read_text()}priors {account} {SUPERUSER}\n"})
        with psycopg.connect(url, autocommit=True) as superuser:
            superuser.execute("SELECT pg_reload_conf()")
        copying = ("--wal-method", "stream", "--checkpoint", "fast", "--write-recovery-conf", "--no-sync")
        command = [str(binary("pg_basebackup")), "--pgdata", str(folder), *copying, "--dbname", url]
        subprocess.run(command, env=environment(), check=True)
        self._cluster = DataDirectory(folder)
        self._cluster.ensure()
        self._cluster.write(settings_files(self._cluster, folder))
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, role: str = LOGIN) -> str:
        """Returns the URL of its database for a role."""
        return f"postgresql://{role}@/{DATABASE}?host={self._cluster.folder}&port=5432"

    def start(self) -> None:
        """Starts it; it answers a moment later."""
        folder = self._cluster.folder
        # Those of the primary, or of a killed replica.
        for lock in ("postmaster.pid", f"{SOCKET_NAME}.lock"):
            (folder / lock).unlink(missing_ok=True)
        command = self._cluster.command([str(binary("postgres")), "-D", str(folder)], folder)
        self._process = subprocess.Popen(
            command, cwd=folder, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def kill(self) -> None:
        """Kills it, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def call(self, function: str) -> None:
        """Calls a function as the superuser, such as `pg_wal_replay_pause()`."""
        with psycopg.connect(self.url(SUPERUSER), autocommit=True) as superuser:
            superuser.execute(f"SELECT {function}".encode())

    def __enter__(self) -> "Standby":
        """Starts it."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
