"""Leases: work that one process does at a time, with no connection held while it does it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple
from uuid import UUID, uuid4

from app.errors import DatabaseUnavailable
from app.foundation.db.database import Database
from app.foundation.db.roles import WorkspaceScope
from app.foundation.db.session import Session
from app.foundation.db.wire import Values

_LEASE_SECONDS = 10.0
"""Time after which a killed maker loses its lease. A running maker renews its lease, so that a language model may
take longer; it holds no connection meanwhile. A lease ends before other workers get the jobs of a killed worker: a job
that finds a lease is retried only after a pause."""
_RENEWALS = 3
"""Renewals in the time of a lease, so that one may fail."""


class Lease(NamedTuple):
    """The statements of one kind of lease, which is stored with the work that it is on."""

    take: str
    """Gives `maker` the lease for so many `seconds`, or renews it; changes no row if another has it."""
    end: str
    """Ends the lease of `maker`, if it has it."""


async def take_lease(session: Session, lease: Lease, work: Values, maker: UUID, seconds: float) -> bool:
    """Gives a maker the lease on work for so many seconds, or renews it; returns False if another has it."""
    return bool(await session.execute(lease.take, {**work, "maker": maker, "seconds": seconds}))


@asynccontextmanager
async def hold_lease(
    database: Database, workspace: WorkspaceScope, lease: Lease, work: Values, seconds: float = _LEASE_SECONDS
) -> AsyncIterator[bool]:
    """Holds the lease on the work that these values name until this context ends; yields False if another has it."""
    maker = uuid4()

    async def take() -> bool:
        async with database.session(workspace, transaction=False) as session:
            return await take_lease(session, lease, work, maker, seconds)

    async def renew() -> None:
        while True:
            await asyncio.sleep(seconds / _RENEWALS)
            # A database that does not answer now may do so the next time.
            with suppress(DatabaseUnavailable):
                await take()

    if not await take():
        yield False
        return
    renewing = asyncio.create_task(renew())
    try:
        yield True
    finally:
        renewing.cancel()
        await asyncio.gather(renewing, return_exceptions=True)
        with suppress(DatabaseUnavailable):
            async with database.session(workspace, transaction=False) as session:
                await session.execute(lease.end, {**work, "maker": maker})
