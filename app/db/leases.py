"""Leases: work that one process does at a time, with no connection held while it does it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from uuid import UUID, uuid4

from app.errors import DatabaseUnavailable

LEASE_SECONDS = 10.0
"""Time after which a killed maker loses its lease. A running maker renews its lease, so that a language model may
take longer; it holds no connection meanwhile. A lease ends before other workers get the jobs of a killed worker: a job
that finds a lease is retried only after a pause."""
RENEWALS = 3
"""Renewals in the time of a lease, so that one may fail."""


@asynccontextmanager
async def leased(
    take: Callable[[UUID, float], Awaitable[bool]], end: Callable[[UUID], Awaitable[None]], seconds: float
) -> AsyncIterator[bool]:
    """Holds a lease, which `take` takes and renews for a maker for so many seconds, until this context ends.

    Yields False if another maker has it.
    """
    maker = uuid4()
    if not await take(maker, seconds):
        yield False
        return
    renewing = asyncio.create_task(_renew(take, maker, seconds))
    try:
        yield True
    finally:
        renewing.cancel()
        await asyncio.gather(renewing, return_exceptions=True)
        with suppress(DatabaseUnavailable):
            await end(maker)


async def _renew(take: Callable[[UUID, float], Awaitable[bool]], maker: UUID, seconds: float) -> None:
    """Renews a lease until cancelled; a database that does not answer now may do so the next time."""
    while True:
        await asyncio.sleep(seconds / RENEWALS)
        with suppress(DatabaseUnavailable):
            await take(maker, seconds)
