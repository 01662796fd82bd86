"""Two services and a worker on one store, with a supervisor that starts again what has ended."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import httpx
import psycopg

from app.foundation.postgres.cluster import SUPERUSER
from app.foundation.postgres.postmaster import socket_folder
from chaos.link import Link
from chaos.progress import NotRecovered, wait_for
from chaos.shim import Shim
from tests.fakes.embeddings import DIMENSION

ROOT = Path(__file__).parents[1]
# Not the installed script: an earlier version is found by PYTHONPATH, and only if the current folder is not searched.
PRIORS = [sys.executable, "-P", "-c", "from app.interfaces.cli import main; main()"]
RESTART_SECONDS = 0.5
"""Time until the supervisor starts an ended process again."""
COMMANDS = {"first": "run", "second": "serve", "worker": "worker"}
SERVICES = ("first", "second")
UNKNOWN = "does not know"
"""Part of the reason why a service is not ready on a newer schema than its own."""
ERRORS = ("error", "Error", "FATAL", "PANIC")
JOBS = """
SELECT task_name || ' ' || status || CASE WHEN scheduled_at > now() THEN ' until ' || scheduled_at ELSE '' END
    || ', attempts ' || attempts || ': ' || count(*)
FROM procrastinate_jobs WHERE status IN ('todo', 'doing', 'failed')
GROUP BY task_name, status, scheduled_at, attempts LIMIT 10
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The place of a machine."""

    data: Path
    """The data directory."""
    log: Path
    """The folder for what the processes print."""
    endpoint: str
    """The address of the embedding endpoint."""
    shim: Shim | None = None
    link: Link | None = None
    """The way to Postgres; without one it is the embedded one."""
    before: Path | None = None
    """The checkout of the version before, which the processes run until they are renewed."""


class Machine:
    """The processes of one store. The supervisor does what an init system does, and nothing else."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._ports = {name: _free_port() for name in SERVICES}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._old = set(COMMANDS) if site.before else set[str]()
        self._command: subprocess.Popen[bytes] | None = None
        self._over, self._held = threading.Event(), threading.Lock()
        self._supervisor = threading.Thread(target=self._supervise, daemon=True)

    def start(self) -> None:
        """Starts all processes; returns when both services are ready.

        Raises:
            NotRecovered: they did not become ready.
        """
        if self.site.link:
            self._start("postgres")
        self._start("first")
        self._until_ready(("first",))
        for name in ("second", "worker"):
            self._start(name)
        self._supervisor.start()
        self.until_ready()

    def stop(self) -> None:
        """Ends all processes by SIGTERM, and Postgres with the last of them."""
        self._over.set()
        if self._supervisor.is_alive():
            self._supervisor.join()
        postgres = self._processes.pop("postgres", None)
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            process.wait()
        if postgres:
            postgres.send_signal(signal.SIGINT)
            postgres.wait()

    def until_ready(self) -> float:
        """Waits until both services are ready and returns the seconds that it took.

        Raises:
            NotRecovered: their state did not change for too long.
        """
        return self._until_ready(SERVICES)

    def url(self, name: str) -> str:
        """Returns the address of a service."""
        return f"http://127.0.0.1:{self._ports[name]}"

    def kill(self, *names: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Sends a signal to these processes."""
        for name in names:
            self._processes[name].send_signal(number)

    def renew(self, name: str) -> None:
        """Ends a process of the version before, starts this version's in its place, and waits until it is ready.

        Raises:
            NotRecovered: it does not become ready.
        """
        with self._held:
            self._processes[name].terminate()
            self._processes[name].wait()
            self._old.discard(name)
            self._start(name)
        if name in SERVICES:
            self._until_ready((name,))

    @contextmanager
    def all_dead(self) -> Iterator[None]:
        """Kills every process, and starts none again while the block runs."""
        with self._held:
            pids = self.postgres()
            self.kill(*self._processes)
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            yield

    def postgres(self) -> list[int]:
        """Returns the process ids of Postgres, the postmaster first; none if it is not running."""
        try:
            postmaster = int((self.site.data / "postgres" / "postmaster.pid").read_text().splitlines()[0])
            children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        except (OSError, ValueError, IndexError):
            return []
        return [postmaster, *map(int, children)]

    def command(self, *words: str) -> "subprocess.Popen[bytes]":
        """Starts a command of Priors on this store."""
        with self._log("command") as log:
            self._command = subprocess.Popen([*PRIORS, *words], env=self._environment(""), stdout=log, stderr=log)
        return self._command

    def kill_the_command(self) -> bool:
        """Kills the command that runs on this store; returns whether there was one."""
        running = self._command is not None and self._command.poll() is None
        if self._command is not None and running:
            self._command.kill()
        return running

    def told(self) -> list[str]:
        """Names the jobs that are left, and the last errors that each process has printed."""
        return [*self._jobs(), *(line for path in sorted(self.site.log.glob("*.log")) for line in _errors(path))]

    def _jobs(self) -> list[str]:
        place = f"host={socket_folder(self.site.data / 'postgres')} port=5432 dbname=priors user={SUPERUSER}"
        try:
            with psycopg.connect(place, connect_timeout=5) as connection:
                return [f"job {row[0]}" for row in connection.execute(JOBS)]
        except psycopg.Error as error:
            return [f"jobs are not known: {error}"]

    def _supervise(self) -> None:
        while not self._over.wait(RESTART_SECONDS):
            with self._held:
                for name, process in list(self._processes.items()):
                    if process.poll() is not None:
                        self._start(name)

    def _start(self, name: str) -> None:
        words = self.site.link.command if name == "postgres" and self.site.link else [*PRIORS, COMMANDS[name]]
        with self._log(name) as log:
            self._processes[name] = subprocess.Popen(words, env=self._environment(name), stdout=log, stderr=log)

    def _log(self, name: str) -> IO[bytes]:
        return (self.site.log / f"{name}.log").open("ab")

    def _environment(self, name: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PRIORS_")}
        root = self.site.before if self.site.before and (name or "first") in self._old else ROOT
        return {
            **kept,
            "PYTHONPATH": f"{root}:{root / 'client'}",
            **(self.site.shim.environment if self.site.shim else {}),
            **({"PRIORS_DATABASE_URL": self.site.link.url} if self.site.link else {}),
            "PRIORS_DATA_DIR": str(self.site.data),
            "PRIORS_PORT": str(self._ports.get(name, 0)),
            "PRIORS_EXAMPLES": "false",
            "PRIORS_EMBEDDED_WORKER": "false",
            "PRIORS_EMBEDDING_PROVIDER": "openai",
            "PRIORS_EMBEDDING_MODEL": "first",
            "PRIORS_EMBEDDING_BASE_URL": self.site.endpoint,
            "PRIORS_EMBEDDING_DIMENSION": str(DIMENSION),
            "PRIORS_LOG_LEVEL": "warning",
        }

    def _until_ready(self, names: tuple[str, ...]) -> float:
        begun = time.monotonic()
        wait_for(lambda: [reason for name in names for reason in self._lacks(name)], "not ready")
        return time.monotonic() - begun

    def _lacks(self, name: str) -> list[str]:
        """Names the reasons why a service is not ready."""
        try:
            answer = httpx.get(f"{self.url(name)}/ready", timeout=10, trust_env=False)
        except httpx.HTTPError as error:
            return [f"{name}: {error or type(error).__name__}"]
        if answer.is_success:
            return []
        reasons = answer.json()["reasons"]
        return [f"{name}: {reason}" for reason in reasons if not (name in self._old and UNKNOWN in reason)]


def _errors(path: Path) -> list[str]:
    """Returns the last lines of a log that tell of errors."""
    lines = path.read_text(errors="replace").splitlines()
    return [f"{path.stem}: {line[:300]}" for line in lines if any(word in line for word in ERRORS)][-3:]


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def running(site: Site) -> Iterator[Machine]:
    """Yields a machine whose services are ready, and stops it at the end.

    Raises:
        NotRecovered: they did not become ready; the message has their last errors.
    """
    site.log.mkdir(parents=True, exist_ok=True)
    machine = Machine(site)
    try:
        machine.start()
        yield machine
    except NotRecovered as failure:
        raise NotRecovered("\n".join([str(failure), *machine.told()])) from failure
    finally:
        machine.stop()
