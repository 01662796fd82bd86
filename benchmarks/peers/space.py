"""Disk and memory that a system takes. Needs Linux's /proc; elsewhere memory is 0."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

MEGABYTE = 1_000_000
PROC = Path("/proc")


def folder_megabytes(folder: Path, *, without: str = "") -> float:
    """Of every file below, those in a folder of that name left out."""
    files = (path for path in folder.rglob("*") if without not in path.parts and path.is_file())
    return sum(path.stat().st_size for path in files) / MEGABYTE


def resident_megabytes(pids: Iterable[int]) -> float:
    """Resident memory of processes; what they share is counted once (their proportional sets)."""
    return sum(_proportional_kilobytes(pid) for pid in pids) * 1024 / MEGABYTE


def family(pid: int) -> Iterator[int]:
    """A process and all that it started."""
    children = defaultdict(list)
    for entry in PROC.glob("[0-9]*"):
        children[_parent(entry)].append(int(entry.name))
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        waiting += children[one]
        yield one


def postmaster(folder: Path) -> int:
    """The process of the Postgres whose data lie below a folder."""
    return int(next(folder.rglob("postmaster.pid")).read_text().split()[0])


def _proportional_kilobytes(pid: int) -> int:
    try:
        lines = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def _parent(entry: Path) -> int:
    try:
        # The name of a process stands in brackets and may hold anything; its parent is the second field after it.
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0
