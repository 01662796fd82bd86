"""The faults: each strikes a running machine and ends by itself."""

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from typing import NamedTuple

from chaos.machine import COMMANDS, SERVICES, Machine

PAUSE_SECONDS = 5.0
CUT_SECONDS = (1.0, 20.0)
"""Shortest and longest time for which the link is cut."""
HOUR, DAY = 3_600, 86_400
JUMPS = (-DAY, -HOUR, HOUR, DAY)
"""Seconds by which the clock jumps."""
MOUNT_SECONDS = 30.0
"""Longest time until killed processes have let go of their files."""


class Needs(Enum):
    """The parts of a machine that not every one has."""

    NOTHING = ""
    DISK = "mounting a small disk needs root"
    SHIM = "there is no C compiler"
    LINK = "a network namespace needs root and the program ip"
    BEFORE = "no version before is given by --before"


class Fault(NamedTuple):
    """What strikes, and where it can."""

    strike: Callable[[Machine, random.Random], None]
    needs: Needs = Needs.NOTHING


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
    with machine.all_dead():
        pass


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
    filler = machine.site.data / "filler"
    free = shutil.disk_usage(machine.site.data).free
    with filler.open("wb") as file, suppress(OSError):
        while free > 0:
            free -= file.write(bytes(1 << 20))
            file.flush()
    time.sleep(PAUSE_SECONDS)
    filler.unlink()


def refuse_writes(machine: Machine, _: random.Random) -> None:
    """Refuses every change of the disk for a while, under the processes that use it."""
    assert machine.site.shim, "it is needed"  # noqa: S101
    machine.site.shim.set(read_only=True)
    time.sleep(PAUSE_SECONDS)
    machine.site.shim.set()


def start_read_only(machine: Machine, _: random.Random) -> None:
    """Kills everything and starts it on a disk that is mounted read-only, which takes changes again after a while."""
    with machine.all_dead():
        deadline = time.monotonic() + MOUNT_SECONDS
        while _mounted_again(machine, "ro"):
            if time.monotonic() > deadline:
                raise TimeoutError("the disk is still in use by killed processes")
            time.sleep(0.05)
    time.sleep(PAUSE_SECONDS)
    _mounted_again(machine, "rw")


def move_the_clock(machine: Machine, rng: random.Random) -> None:
    """Moves the clock of every process by an hour or a day, and back after a while."""
    assert machine.site.shim, "it is needed"  # noqa: S101
    machine.site.shim.set(seconds=rng.choice(JUMPS))
    time.sleep(PAUSE_SECONDS)
    machine.site.shim.set()


def upgrade_each(machine: Machine, _: random.Random) -> None:
    """Replaces the version before by this one: a service, which migrates under the others, then they, one by one."""
    for name in COMMANDS:
        machine.renew(name)
        time.sleep(PAUSE_SECONDS)


def cut_the_link(machine: Machine, rng: random.Random) -> None:
    """Drops all packets between the services and Postgres for a while."""
    _while_cut(machine, rng, lambda: None)


def lose_the_database(machine: Machine, rng: random.Random) -> None:
    """Cuts the link and kills Postgres behind it, so that no client is told of the end of its connections."""
    _while_cut(machine, rng, lambda: _signal(machine.postgres(), signal.SIGKILL))


def _while_cut(machine: Machine, rng: random.Random, meanwhile: Callable[[], None]) -> None:
    assert machine.site.link, "it is needed"  # noqa: S101
    machine.site.link.cut()
    meanwhile()
    time.sleep(rng.uniform(*CUT_SECONDS))
    machine.site.link.mend()


def _mounted_again(machine: Machine, mode: str) -> int:
    command = ["mount", "-o", f"remount,{mode}", str(machine.site.data)]
    return subprocess.run(command, check=False, capture_output=True).returncode


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


FAULTS: dict[str, Fault] = {
    "a service is killed": Fault(kill_a_service),
    "the command is killed": Fault(kill_the_command),
    "the worker is killed": Fault(kill_the_worker),
    "Postgres is killed": Fault(kill_postgres),
    "a backend is killed": Fault(kill_a_backend),
    "all are killed": Fault(kill_all),
    "a service is told to end": Fault(end_a_service),
    "Postgres is paused": Fault(pause_postgres),
    "the worker is paused": Fault(pause_the_worker),
    "the disk is full": Fault(fill_the_disk, Needs.DISK),
    "the disk turns read-only": Fault(refuse_writes, Needs.SHIM),
    "all start on a read-only disk": Fault(start_read_only, Needs.DISK),
    "the clock jumps": Fault(move_the_clock, Needs.SHIM),
    "the link drops": Fault(cut_the_link, Needs.LINK),
    "Postgres is lost behind the link": Fault(lose_the_database, Needs.LINK),
    "the version before is upgraded": Fault(upgrade_each, Needs.BEFORE),
}
"""By the name that the table shows."""
