"""Enqueueing a job in the transaction that makes it true. What a task does is `app/jobs`' business."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import NamedTuple

import msgspec
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

ENQUEUE = text("""
SELECT procrastinate_defer_jobs_v1(ARRAY[ROW(
    'default', :task, :priority, :alone, :lock, CAST(:arguments AS jsonb),
    CASE WHEN :after > 0 THEN now() + make_interval(secs => :after) END
)::procrastinate_job_to_defer_v1])
""")


STATISTICS, EMBED, INDEX = "refresh_statistics", "embed_waiting", "index_vectors"
COMPRESS, LINK = "compress", "link_waiting"
PRIORITIES = MappingProxyType({STATISTICS: 40, EMBED: 30, INDEX: 20, COMPRESS: 10, LINK: 0})
"""The greatest is fetched first: what is short before what a language model may take minutes for, and links last."""
ALONE = frozenset({STATISTICS, EMBED, INDEX, LINK})
"""Tasks of which two with one lock would do the same work: the second is not fetched before the first has ended, so it
takes no worker's place."""

LATER = "jobs"
"""Where a connection keeps what is added at the end of its transaction."""


class _Job(NamedTuple):
    """What a worker is asked for."""

    task: str
    lock: str
    arguments: str
    """As JSON."""
    after: float
    """Seconds until it may be fetched."""


async def enqueue(
    connection: AsyncConnection, task: str, *, lock: str | None = None, after: float = 0.0, **arguments: int | str
) -> None:
    """Ask a worker for `task`, `after` some seconds, once: while a job with this lock waits, another is not added.
    Without one the task's name is the lock.

    Within `Database.transaction` the job is added last: until the commit, whoever adds one with the same lock waits.
    """
    job = _Job(task, lock or task, msgspec.json.encode(arguments).decode(), after)
    later: dict[str, _Job] | None = connection.info.get(LATER)
    if later is None:
        await _add(connection, job)
    else:
        later[job.lock] = job


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
    alone = job.lock if job.task in ALONE else None
    try:
        async with connection.begin_nested():
            await connection.execute(ENQUEUE, {**job._asdict(), "priority": PRIORITIES[job.task], "alone": alone})
    except IntegrityError:
        return
