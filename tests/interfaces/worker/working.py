"""A worker at work, and what it has to do."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from app.interfaces.worker.worker import run_worker
from app.storage.memories.memory import NewMemory
from app.wiring import Services
from tests.conftest import workspace_in


@asynccontextmanager
async def working(services: Services) -> AsyncIterator[None]:
    stop = asyncio.Event()
    running = asyncio.create_task(run_worker(services, stop))
    try:
        yield
    finally:
        stop.set()
        await running


async def jobs(services: Services) -> set[tuple[str, str]]:
    """Returns task and status of each that is not upkeep."""
    listed = "SELECT task_name, status::text FROM procrastinate_jobs WHERE task_name <> 'upkeep'"
    async with services.database.across() as session:
        return {(row.task_name, row.status) for row in await session.rows(listed)}


async def until_jobs(services: Services, reached: Callable[[set[tuple[str, str]]], bool]) -> None:
    while True:
        if reached(await jobs(services)):
            return
        await asyncio.sleep(0.05)


async def note(services: Services, *bodies: str, workspace: str = "w") -> None:
    notes = [NewMemory(kind="note", body=body) for body in bodies]
    target = await workspace_in(services.database, workspace)
    await services.write_gate.remember(target, notes)


async def until_settled(services: Services, *, but_for: str = "") -> None:
    """Wait until nothing is pending and no job is left, but for those of this status."""
    jobs = (
        "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing') AND task_name <> 'upkeep'"
        f" AND status::text <> '{but_for}'"
    )
    pending = "SELECT count(*) FROM pending_embeddings"
    while True:
        async with services.database.across() as session:
            if not sum([await session.value(count) for count in (jobs, pending)]):
                return
        await asyncio.sleep(0.05)
