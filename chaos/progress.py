"""Waiting for as long as there is progress."""

import time
from collections.abc import Callable

STALL_SECONDS = 120.0
"""Longest time without any change before a wait fails: a crash recovery on a busy machine tells nothing for a while."""
MOST_SECONDS = 1800.0
"""Longest wait in all, for states that change and never end."""
PAUSE_SECONDS = 0.2


class NotRecovered(Exception):
    """The machine did not come back by itself."""


def wait_for(left: Callable[[], list[str]], failure: str) -> None:
    """Waits until `left` names nothing more.

    Raises:
        NotRecovered: it has named the same for `STALL_SECONDS`, or something for `MOST_SECONDS`; the message names it.
    """
    begun = changed = time.monotonic()
    before: list[str] = []
    while found := left():
        now = time.monotonic()
        if found != before:
            before, changed = found, now
        if now - changed > STALL_SECONDS or now - begun > MOST_SECONDS:
            raise NotRecovered(f"{failure}, after {now - begun:.0f} s: {'; '.join(found[:5])}")
        time.sleep(PAUSE_SECONDS)
