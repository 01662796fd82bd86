"""Enqueueing a job in the transaction that makes it true. What a task does is `app/jobs`' business."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import msgspec
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

ENQUEUE = text("""
SELECT procrastinate_defer_jobs_v1(ARRAY[ROW(
    'default', :task, 0, NULL, :lock, CAST(:arguments AS jsonb), NULL
)::procrastinate_job_to_defer_v1])
""")


LATER = "jobs"
"""Where a connection keeps what is added at the end of its transaction."""


class _Job(NamedTuple):
    """What a worker is asked for."""

    task: str
    lock: str
    arguments: str
    """As JSON."""


async def enqueue(connection: AsyncConnection, task: str, *, lock: str, **arguments: int | str) -> None:
    """Ask a worker for `task`, once: while a job with this lock waits, another is not added.

    Within `Database.transaction` the job is added last: until the commit, whoever adds one with the same lock waits.
    """
    job = _Job(task, lock, msgspec.json.encode(arguments).decode())
    later: dict[str, _Job] | None = connection.info.get(LATER)
    if later is None:
        await _add(connection, job)
    else:
        later[lock] = job


@asynccontextmanager
async def enqueued_last(connection: AsyncConnection) -> AsyncIterator[None]:
    """What is enqueued within is added at the end, in the order of the locks, so that no two wait for each other."""
    later: dict[str, _Job] = {}
    # Asked for once: a connection that was lost gives nothing away any more.
    info = connection.info
    info[LATER] = later
    try:
        yield
        for _, job in sorted(later.items()):
            await _add(connection, job)
    finally:
        info.pop(LATER, None)


async def _add(connection: AsyncConnection, job: _Job) -> None:
    try:
        async with connection.begin_nested():
            await connection.execute(ENQUEUE, job._asdict())
    except IntegrityError:
        return
