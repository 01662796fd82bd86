"""The faults: each strikes a running machine and ends by itself."""

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress

from chaos.machine import SERVICES, Machine

PAUSE_SECONDS = 5.0

Fault = Callable[[Machine, random.Random], None]


def kill_a_service(machine: Machine, rng: random.Random) -> None:
    """Kills one of the two services."""
    machine.kill(rng.choice(SERVICES))


def kill_the_worker(machine: Machine, _: random.Random) -> None:
    """Kills the worker."""
    machine.kill("worker")


def kill_the_command(machine: Machine, rng: random.Random) -> None:
    """Kills the command that runs, or a service if the work is none of commands."""
    if not machine.kill_the_command():
        kill_a_service(machine, rng)


def kill_postgres(machine: Machine, _: random.Random) -> None:
    """Kills the postmaster; its children end when they notice."""
    _signal(machine.postgres()[:1], signal.SIGKILL)


def kill_a_backend(machine: Machine, rng: random.Random) -> None:
    """Kills one child of the postmaster, which then restarts all of them and recovers from the log."""
    children = machine.postgres()[1:]
    _signal([rng.choice(children)] if children else [], signal.SIGKILL)


def kill_all(machine: Machine, _: random.Random) -> None:
    """Kills services, worker and Postgres at once, as the machine's end would."""
    pids = machine.postgres()
    machine.kill(*SERVICES, "worker")
    _signal(pids, signal.SIGKILL)


def end_a_service(machine: Machine, rng: random.Random) -> None:
    """Tells one of the two services to end."""
    machine.kill(rng.choice(SERVICES), number=signal.SIGTERM)


def pause_postgres(machine: Machine, _: random.Random) -> None:
    """Stops all processes of Postgres for a while."""
    pids = machine.postgres()
    _signal(pids, signal.SIGSTOP)
    time.sleep(PAUSE_SECONDS)
    _signal(pids, signal.SIGCONT)


def pause_the_worker(machine: Machine, _: random.Random) -> None:
    """Stops the worker for a while."""
    machine.kill("worker", number=signal.SIGSTOP)
    time.sleep(PAUSE_SECONDS)
    machine.kill("worker", number=signal.SIGCONT)


def fill_the_disk(machine: Machine, _: random.Random) -> None:
    """Fills the disk of the data directory to the last byte for a while."""
    filler = machine.folder / "filler"
    free = shutil.disk_usage(machine.folder).free
    with filler.open("wb") as file, suppress(OSError):
        while free > 0:
            free -= file.write(bytes(1 << 20))
            file.flush()
    time.sleep(PAUSE_SECONDS)
    filler.unlink()


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


FAULTS: dict[str, Fault] = {
    "a service is killed": kill_a_service,
    "the command is killed": kill_the_command,
    "the worker is killed": kill_the_worker,
    "Postgres is killed": kill_postgres,
    "a backend is killed": kill_a_backend,
    "all are killed": kill_all,
    "a service is told to end": end_a_service,
    "Postgres is paused": pause_postgres,
    "the worker is paused": pause_the_worker,
    "the disk is full": fill_the_disk,
}
"""By the name that the table shows."""

DISK = "the disk is full"
"""The fault that needs a small disk of its own."""
