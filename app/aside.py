"""Work that may take long is done beside the event loop, so that no other request waits for it."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def aside(work: Callable[[], T], *, long: bool) -> T:
    """What `work` gives: from a thread where it is `long`, at once where a thread would take longer than it does."""
    return await asyncio.to_thread(work) if long else work()
