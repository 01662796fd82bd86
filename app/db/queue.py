"""Enqueueing a job in the transaction that makes it true. What a task does is `app/jobs`' business."""

import msgspec
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

ENQUEUE = text("""
SELECT procrastinate_defer_jobs_v1(ARRAY[ROW(
    'default', :task, 0, NULL, :lock, CAST(:arguments AS jsonb), NULL
)::procrastinate_job_to_defer_v1])
""")


async def enqueue(connection: AsyncConnection, task: str, *, lock: str, **arguments: int | str) -> None:
    """Ask a worker for `task`, once: while a job with this lock waits, another is not added."""
    try:
        async with connection.begin_nested():
            await connection.execute(
                ENQUEUE, {"task": task, "lock": lock, "arguments": msgspec.json.encode(arguments).decode()}
            )
    except IntegrityError:
        return
