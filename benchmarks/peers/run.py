"""All systems at all works, each in a process of its own, and what they measured."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.peers.catalog import SYSTEMS, Entry
from benchmarks.peers.one import INTAKE, QUALITY, QUIET, SPEED
from benchmarks.peers.quality import Values, needed

LONGEST = 3_600
"""Seconds after which a system's work is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One system at one work."""

    system: str
    work: str
    size: int = 0
    """Memories, where the work has a size."""

    @property
    def name(self) -> str:
        """Of its file."""
        return "-".join([self.work, *([str(self.size)] if self.size else []), self.system])


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a task."""

    task: Task
    when: str
    """The second it ended, UTC."""
    load: float
    """The machine's load average when it began: with other work beside it, milliseconds are longer."""
    values: Values
    failure: str = ""
    """Why there are no values."""


def plan(works: Sequence[str], systems: Sequence[str], sizes: Sequence[int]) -> Iterator[Task]:
    """Work by work, so that what is compared runs close together."""
    chosen = [item for item in SYSTEMS if item.name in systems]
    for work in works:
        if work in QUALITY:
            yield from (Task(system=item.name, work=work) for item in chosen)
        elif work in INTAKE:
            yield from (Task(system=item.name, work=work) for item in chosen if item.scales)
        else:
            yield from (
                Task(system=item.name, work=work, size=size)
                for size in sizes
                for item in chosen
                if _carries(item, size)
            )


def _carries(item: Entry, size: int) -> bool:
    return item.scales and size <= item.largest


def run(task: Task, folder: Path, options: Sequence[str]) -> Outcome:
    """Do one task and keep its outcome in a file."""
    load = os.getloadavg()[0]
    into = folder / f"{task.name}.values"
    values, failure = _measured(task, into, options)
    outcome = Outcome(
        task=task, when=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), load=load, values=values, failure=failure
    )
    (folder / f"{task.name}.json").write_text(json.dumps(asdict(outcome), indent=2) + "\n")
    return outcome


def _measured(task: Task, into: Path, options: Sequence[str]) -> tuple[Values, str]:
    path = needed(task.work)
    if path is not None and not path.exists():
        return {}, f"the data is not at {path}"
    given = [*options, f"--into={into}", f"--vectors={into.parent / 'vectors.npz'}"]
    size = [f"--size={task.size}"] if task.size else []
    command = [sys.executable, "-m", "benchmarks.peers.one", task.system, task.work, *size, *given]
    try:
        done = subprocess.run(command, env={**os.environ, **QUIET}, capture_output=True, timeout=LONGEST, check=False)
    except subprocess.TimeoutExpired:
        return {}, f"did not end within {LONGEST} s"
    if done.returncode != 0:
        return {}, (done.stderr.decode().strip().splitlines() or ["it ended without a word"])[-1]
    values: Values = json.loads(into.read_text())
    into.unlink()
    return values, ""


def kept(folder: Path) -> list[Outcome]:
    """The outcomes that are in the folder."""
    found = []
    for path in sorted(folder.glob("*.json")):
        given = json.loads(path.read_text())
        found.append(Outcome(**{**given, "task": Task(**given["task"])}))
    return found


WORKS = (*QUALITY, *INTAKE, *SPEED)
