"""The worker: runs the jobs of all tasks, beside the service or in a process of its own."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import structlog
from procrastinate import App, JobContext, PsycopgConnector
from procrastinate.exceptions import ConnectorException, UniqueViolation
from procrastinate.jobs import Status
from procrastinate.manager import JobManager

from app import tracing
from app.errors import NotFound
from app.foundation.db.pool import SERVICE, libpq_url
from app.interfaces.worker.tasks import put_off, services_of, tasks
from app.operations.status import Overview
from app.wiring import Services

_CONCURRENCY = 3
"""Jobs that one worker runs at the same time, so that statistics do not wait for a long embedding, nor lessons for the
moment that each job of a session lets pass before it begins."""
_POLL_SECONDS = 0.5
"""Time between two polls for jobs. NOTIFY announces a new job, but nothing announces the end of a job that it waits
for. A poll takes 1 ms."""
HEARTBEAT_SECONDS, STALLED_SECONDS = 3.0, 13.0
"""Time between two heartbeats of a worker, and the time without one after which other workers get its jobs. An
abandoned job blocks all jobs of its kind; a job that runs twice does no harm."""
_STOP_SECONDS = 5.0
"""Time that a job may take after a stop; then it is aborted, and runs again at the next start."""
_RESTART_SECONDS = 2.0
"""Time until a worker that has failed starts again."""

logger = structlog.get_logger()


async def _release_stalled(manager: JobManager) -> None:
    """Puts the jobs of killed workers back into the queue.

    A job is dropped instead if another of its kind is queued, because that one will do the work.
    """
    for job in await manager.get_stalled_jobs(seconds_since_heartbeat=STALLED_SECONDS):
        with suppress(ConnectorException):  # another worker was faster
            try:
                await manager.retry_job(job)
            except UniqueViolation:
                await manager.finish_job(job, Status.ABORTED, delete_job=True)


async def _release_until(ended: asyncio.Event, manager: JobManager) -> None:
    """Releases stalled jobs now and then. A cancellation alone may not end it: a pool can make another error of it."""
    while not ended.is_set():
        try:
            await _release_stalled(manager)
        except Exception as error:  # noqa: BLE001 - whatever ended it, the other work goes on
            logger.warning("stalled jobs cannot be looked for", reason=str(error))
        with suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), HEARTBEAT_SECONDS)


def procrastinate_app(url: str) -> App:
    """Returns the procrastinate app for the database at `url`. Its connections run as the role that serves."""
    connector = PsycopgConnector(
        conninfo=libpq_url(url), kwargs={"options": f"-c role={SERVICE}"}, min_size=1, max_size=_CONCURRENCY + 2
    )
    app = App(connector=connector)
    app.add_tasks_from(tasks, namespace="")
    return app


async def _trace_job(call_next: Callable[[], Awaitable[Any]], context: JobContext, _worker: object) -> object:
    """Runs a job as a part of the trace of the request that asked for it, if that was exported."""
    parent = context.job.task_kwargs.pop(tracing.PARENT, "")
    with tracing.job(context.job.task_name, str(parent)):
        return await call_next()


async def _unless_erased(call_next: Callable[[], Awaitable[Any]], context: JobContext, _worker: object) -> object:
    """Runs a job. If it fails because its workspace was erased, it has nothing left to do, and is done."""
    try:
        return await call_next()
    except Exception:  # whatever it was: rows that a job needs go at any moment of it
        if await _has_its_workspace(context):
            raise
        logger.info("a job ended with its workspace", task=context.job.task_name)
        return None


async def _has_its_workspace(context: JobContext) -> bool:
    """Tells whether the workspace of a job is there; a job of all workspaces has what it needs."""
    workspace_id = context.job.task_kwargs.get("workspace_id")
    if not isinstance(workspace_id, int):
        return True
    try:
        await services_of(context).workspaces.resolve_id(workspace_id)
    except NotFound:
        return False
    return True


def _options(services: Services) -> dict[str, Any]:
    return {
        "concurrency": _CONCURRENCY,
        "fetch_job_polling_interval": _POLL_SECONDS,
        "update_heartbeat_interval": HEARTBEAT_SECONDS,
        "stalled_worker_timeout": STALLED_SECONDS,
        "delete_jobs": "successful",
        "install_signal_handlers": False,
        "worker_middleware": [_trace_job, _unless_erased, put_off],
        "additional_context": {"services": services},
    }


async def run_worker(services: Services, stop: asyncio.Event) -> None:
    """Runs jobs until `stop` is set."""
    options = {**_options(services), "shutdown_graceful_timeout": _STOP_SECONDS}
    async with procrastinate_app(services.database.url).open_async() as app:
        worker = asyncio.create_task(app.run_worker_async(**options))
        stopped = asyncio.create_task(stop.wait())
        ended = asyncio.Event()
        releasing = asyncio.create_task(_release_until(ended, app.job_manager))
        try:
            await asyncio.wait({worker, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if worker.done():
                worker.result()
        finally:
            ended.set()
            for task in (releasing, stopped, worker):
                task.cancel()
            await asyncio.gather(releasing, stopped, worker, return_exceptions=True)


async def keep_working(services: Services, stop: asyncio.Event) -> None:
    """Runs a worker beside other work until `stop` is set, unless PRIORS_EMBEDDED_WORKER is off.

    It starts again after the database was unreachable.
    """
    while services.settings.embedded_worker and not stop.is_set():
        try:
            await run_worker(services, stop)
        except Exception as error:  # noqa: BLE001 - whatever ended it, the other work goes on
            logger.warning("the worker stopped and starts again", reason=str(error))
            await asyncio.sleep(_RESTART_SECONDS)


async def work_off(services: Services) -> None:
    """Runs the jobs that are due, and those that they ask for, until none is left.

    Jobs of a later moment stay: those that wait for the end of a bulk intake or for a part that did not answer.
    """
    async with procrastinate_app(services.database.url).open_async() as app:
        while (await Overview(database=services.database).jobs()).due:
            await _release_stalled(app.job_manager)
            await app.run_worker_async(**_options(services), wait=False)
            # What is still due waits for a job that another worker runs.
            await asyncio.sleep(_POLL_SECONDS)
