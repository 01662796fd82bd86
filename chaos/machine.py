"""Two services and a worker on one data directory, with a supervisor that starts again what has ended."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from tests.fakes.embeddings import DIMENSION

PRIORS = Path(sys.executable).with_name("priors")
RESTART_SECONDS = 0.5
"""Time until the supervisor starts an ended process again."""
RECOVERY_SECONDS = 180.0
"""Longest wait for a recovery before it counts as failed: a crash recovery on a busy machine takes its time."""
COMMANDS = {"first": "run", "second": "serve", "worker": "worker"}
SERVICES = ("first", "second")


class NotRecovered(Exception):
    """The machine did not come back by itself."""


class Machine:
    """The processes of one store. The supervisor does what an init system does, and nothing else."""

    def __init__(self, folder: Path, embedding_url: str) -> None:
        self.folder = folder
        self._embedding_url = embedding_url
        self._ports = {name: _free_port() for name in SERVICES}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._command: subprocess.Popen[bytes] | None = None
        self._over = threading.Event()
        self._supervisor = threading.Thread(target=self._supervise, daemon=True)
        self._log = (folder / "processes.log").open("ab")

    def start(self) -> None:
        """Starts all processes; returns when both services are ready.

        Raises:
            NotRecovered: they did not become ready.
        """
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
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            process.wait()
        self._log.close()

    def until_ready(self) -> float:
        """Waits until both services are ready and returns the seconds that it took.

        Raises:
            NotRecovered: they were not ready within `RECOVERY_SECONDS`.
        """
        return self._until_ready(SERVICES)

    def url(self, name: str) -> str:
        """Returns the address of a service."""
        return f"http://127.0.0.1:{self._ports[name]}"

    def kill(self, *names: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Sends a signal to these processes."""
        for name in names:
            self._processes[name].send_signal(number)

    def postgres(self) -> list[int]:
        """Returns the process ids of Postgres, the postmaster first; none if it is not running."""
        try:
            postmaster = int((self.folder / "postgres" / "postmaster.pid").read_text().splitlines()[0])
            children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        except (OSError, ValueError, IndexError):
            return []
        return [postmaster, *map(int, children)]

    def command(self, *words: str) -> "subprocess.Popen[bytes]":
        """Starts a command of Priors on this store."""
        self._command = subprocess.Popen([PRIORS, *words], env=self._environment(), stdout=self._log, stderr=self._log)
        return self._command

    def kill_the_command(self) -> bool:
        """Kills the command that runs on this store; returns whether there was one."""
        running = self._command is not None and self._command.poll() is None
        if self._command is not None and running:
            self._command.kill()
        return running

    def _supervise(self) -> None:
        while not self._over.wait(RESTART_SECONDS):
            for name, process in list(self._processes.items()):
                if process.poll() is not None:
                    self._start(name)

    def _start(self, name: str) -> None:
        environment = self._environment() | {"PRIORS_PORT": str(self._ports.get(name, 0))}
        self._processes[name] = subprocess.Popen(
            [PRIORS, COMMANDS[name]], env=environment, stdout=self._log, stderr=self._log
        )

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PRIORS_")}
        return {
            **kept,
            "PRIORS_DATA_DIR": str(self.folder),
            "PRIORS_EXAMPLES": "false",
            "PRIORS_EMBEDDED_WORKER": "false",
            "PRIORS_EMBEDDING_PROVIDER": "openai",
            "PRIORS_EMBEDDING_MODEL": "first",
            "PRIORS_EMBEDDING_BASE_URL": self._embedding_url,
            "PRIORS_EMBEDDING_DIMENSION": str(DIMENSION),
            "PRIORS_LOG_LEVEL": "warning",
        }

    def _until_ready(self, names: tuple[str, ...]) -> float:
        begun = time.monotonic()
        while time.monotonic() - begun < RECOVERY_SECONDS:
            if all(self._is_ready(name) for name in names):
                return time.monotonic() - begun
            time.sleep(0.1)
        raise NotRecovered(f"not ready within {RECOVERY_SECONDS:.0f} s: see {self._log.name}")

    def _is_ready(self, name: str) -> bool:
        with suppress(httpx.HTTPError):
            return httpx.get(f"{self.url(name)}/ready", timeout=10).status_code == httpx.codes.OK
        return False


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def running(folder: Path, embedding_url: str) -> Iterator[Machine]:
    """Yields a machine whose services are ready, and stops it at the end."""
    machine = Machine(folder, embedding_url)
    try:
        machine.start()
        yield machine
    finally:
        machine.stop()
