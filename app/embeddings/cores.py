"""How many cores there are to compute on."""

import math
import os
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


def usable_cores(groups: Path = CGROUPS, membership: Path = MEMBERSHIP) -> int:
    """Cores that this process may use: those it is bound to, or as many as its container's share of time is worth.

    A container with `cpus: 1` sees every core of its host, and a thread for each of them would share one.
    """
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(bound, _quota(groups, membership))))


def _quota(groups: Path, membership: Path) -> float:
    """Cores' worth of time that its control groups leave to this process (cgroup v2); infinite without a limit."""
    try:
        own = next(line for line in membership.read_text().splitlines() if line.startswith("0::"))
    except (OSError, StopIteration):
        return math.inf
    folder = groups / own.removeprefix("0::").lstrip("/")
    return min(_limit(place / "cpu.max") for place in (folder, *folder.parents) if place.is_relative_to(groups))


def _limit(file: Path) -> float:
    """`cpu.max` holds microseconds a period, or `max`, and the period."""
    try:
        quota, period = file.read_text().split()
        return math.inf if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return math.inf
