"""Whose turn it is to compress an observation: one compresses it at a time, whoever else is about to."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from uuid import UUID, uuid4

from app.db.engine import Database
from app.errors import DatabaseUnavailable, Unavailable
from app.runs.observations import store

TURN_SECONDS = 30.0
"""After which whoever was killed has lost its turn. Who goes on says so in time, so that a language model may take
longer; no connection is held meanwhile."""
RENEWALS = 3
"""In this time, so that one may be missed."""


class Underway(Unavailable):
    """Another compresses it right now."""


@asynccontextmanager
async def turn(
    database: Database, workspace_id: int, observation_id: UUID, *, seconds: float = TURN_SECONDS
) -> AsyncIterator[bool]:
    """Whether it is this caller's turn; then it is nobody else's until this ends, or the process is killed.

    It is nobody's where it was made already.
    """
    maker = uuid4()

    async def take() -> bool:
        async with database.statements() as connection:
            return await store.take_turn(connection, workspace_id, observation_id, maker, seconds)

    if not await take():
        yield False
        return
    renewing = asyncio.create_task(_renew(take, seconds / RENEWALS))
    try:
        yield True
    finally:
        renewing.cancel()
        await asyncio.gather(renewing, return_exceptions=True)
        with suppress(DatabaseUnavailable):
            async with database.statements() as connection:
                await store.end_turn(connection, workspace_id, observation_id, maker)


async def _renew(take: Callable[[], Awaitable[bool]], pause: float) -> None:
    """What is not renewed ends: a database that does not answer now may do so the next time."""
    while True:
        await asyncio.sleep(pause)
        with suppress(DatabaseUnavailable):
            await take()
