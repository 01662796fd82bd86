"""The tasks, each a few lines that call a verb, and the worker that runs them."""

import asyncio
from typing import Any
from uuid import UUID

import structlog
from procrastinate import App, JobContext, PsycopgConnector, RetryStrategy
from procrastinate.blueprints import Blueprint

from app.db.engine import libpq_url
from app.db.queue import enqueue
from app.embeddings.backfill import build_indexes, embed_waiting, find_unlisted, pouring
from app.embeddings.following import FollowingProvider
from app.embeddings.reembed import drop_retired
from app.errors import Unavailable
from app.links.derive import link_waiting, many_wait
from app.memories.lexical_index import STALE_AT_WRITES
from app.memories.lifecycle import empty_trash
from app.memories.upkeep import refresh_all_statistics, refresh_workspace_statistics
from app.observations.record import ask_again
from app.observations.settle import compress_waiting
from app.wiring import Services

CONCURRENCY = 2
"""Jobs that one worker runs at once: statistics need not wait for a long embedding."""
POLL_SECONDS = 5.0
"""A job is announced by NOTIFY; polling only finds what was enqueued while nobody listened."""
STOP_SECONDS = 5.0
"""A job that goes on for longer after a stop is aborted; it is done again at the next start."""
RETRY = RetryStrategy(max_attempts=20, exponential_wait=2, retry_exceptions={Unavailable})

SETTLE_SECONDS = 0.3
"""A writer asks for a worker in the last statements of its transaction: by then it has committed."""

_embedding = asyncio.Lock()
_linking = asyncio.Lock()
tasks = Blueprint()
logger = structlog.get_logger()


def _services(context: JobContext) -> Services:
    services: Services = context.additional_context["services"]
    return services


@tasks.task(name="embed_waiting", pass_context=True, retry=RETRY, queue="default")
async def embed_waiting_task(context: JobContext) -> None:
    """Embed what waits, then give workspaces that have outgrown the exact scan their index."""
    await _embed_all(_services(context))


async def _embed_all(services: Services) -> None:
    """One at a time in a process: two would embed the same memories.

    Looks once more a moment later: a writer that found this job still waiting has relied on it, and may have committed
    after it looked.
    """
    async with _embedding:
        await _follow(services)
        done = await embed_waiting(services.database, services.provider)
        await asyncio.sleep(SETTLE_SECONDS)
        done += await embed_waiting(services.database, services.provider)
        if done:
            logger.info("embedded", memories=done)
            await build_indexes(services.database)


@tasks.task(name="index_vectors", pass_context=True, retry=RETRY, queue="default")
async def index_vectors_task(context: JobContext) -> None:
    """Give workspaces that have outgrown the exact scan their index.

    While vectors pour in nothing is done: the next that come ask for this job again.
    """
    await _index_vectors(_services(context))


async def _index_vectors(services: Services) -> None:
    if not await pouring(services.database) and await build_indexes(services.database):
        # What was near had to wait for the index.
        async with services.database.transaction() as connection:
            await enqueue(connection, "link_waiting", lock="link_waiting")


@tasks.task(name="link_waiting", pass_context=True, retry=RETRY, queue="default")
async def link_waiting_task(context: JobContext) -> None:
    """Find the links of what was stored or embedded."""
    await _link_all(_services(context))


async def _link_all(services: Services) -> None:
    """One at a time in a process, and once more a moment later, as `_embed_all` does.

    While memories pour in only a few are linked: the next that come ask for this job again.
    """
    async with _linking:
        if await many_wait(services.database) and await pouring(services.database):
            return
        done = await link_waiting(services.database)
        await asyncio.sleep(SETTLE_SECONDS)
        done += await link_waiting(services.database)
        if done:
            logger.info("linked", memories=done)


@tasks.task(name="refresh_statistics", pass_context=True, retry=RETRY, queue="default")
async def refresh_statistics_task(context: JobContext, workspace_id: int) -> None:
    """Take a workspace's lexical statistics anew, should they have become stale."""
    await refresh_workspace_statistics(_services(context).database, workspace_id, stale=STALE_AT_WRITES)


@tasks.task(name="compress", pass_context=True, retry=RETRY, queue="default")
async def compress_task(context: JobContext, workspace_id: int, observation_id: str) -> None:
    """Compress a finished run."""
    services = _services(context)
    await compress_waiting(services.database, services.compressor, workspace_id, UUID(observation_id))


@tasks.periodic(cron="*/5 * * * *")
@tasks.task(name="upkeep", pass_context=True, queueing_lock="upkeep", queue="default")
async def upkeep_task(context: JobContext, timestamp: int) -> None:  # noqa: ARG001 - procrastinate passes it
    """Find what no job was enqueued for: a restored backup, a worker that was killed."""
    services = _services(context)
    for job in await context.app.job_manager.get_stalled_jobs():
        await context.app.job_manager.retry_job(job)
    await drop_retired(services.database)
    await find_unlisted(services.database)
    await ask_again(services.database)
    await empty_trash(services.database, days=services.settings.trash_days)
    await _embed_all(services)
    await _index_vectors(services)
    await refresh_all_statistics(services.database)
    await _link_all(services)


async def _follow(services: Services) -> None:
    """The worker embeds by the model that the database serves."""
    if isinstance(services.provider, FollowingProvider):
        await services.provider.follow(services.database)


def procrastinate_app(url: str) -> App:
    """The procrastinate app for the database at `url`."""
    connector = PsycopgConnector(conninfo=libpq_url(url), min_size=1, max_size=CONCURRENCY + 2)
    app = App(connector=connector)
    app.add_tasks_from(tasks, namespace="")
    return app


async def run_worker(services: Services, stop: asyncio.Event) -> None:
    """Run jobs until `stop` is set."""
    options: dict[str, Any] = {
        "concurrency": CONCURRENCY,
        "fetch_job_polling_interval": POLL_SECONDS,
        "shutdown_graceful_timeout": STOP_SECONDS,
        "delete_jobs": "successful",
        "install_signal_handlers": False,
        "additional_context": {"services": services},
    }
    async with procrastinate_app(services.database.url).open_async() as app:
        worker = asyncio.create_task(app.run_worker_async(**options))
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({worker, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if worker.done():
                worker.result()
        finally:
            stopped.cancel()
            worker.cancel()
            await asyncio.gather(worker, stopped, return_exceptions=True)
