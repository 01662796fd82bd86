"""Waiting for as long as there is progress."""

import os
import time
from collections.abc import Callable

STALL_SECONDS = 90.0
"""Longest time without any change before a wait fails, on an idle computer: a crash recovery tells nothing."""
MOST_SECONDS = 900.0
"""Longest wait in all on an idle computer, for states that change and never end."""
PAUSE_SECONDS = 0.2


class NotRecovered(Exception):
    """The machine did not come back by itself."""


def wait_for(left: Callable[[], list[str]], failure: str) -> None:
    """Waits until `left` names nothing more.

    Raises:
        NotRecovered: it has named the same for `STALL_SECONDS`, or something for `MOST_SECONDS`, times the processes
            that share a core; the message names it.
    """
    begun = changed = time.monotonic()
    before: list[str] = []
    while found := left():
        now = time.monotonic()
        if found != before:
            before, changed = found, now
        if now - changed > STALL_SECONDS * _slowness() or now - begun > MOST_SECONDS * _slowness():
            raise NotRecovered(f"{failure}, after {now - begun:.0f} s: {'; '.join(found[:5])}")
        time.sleep(PAUSE_SECONDS)


def _slowness() -> float:
    """Returns the number of running processes for each core, 1 at the least."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
