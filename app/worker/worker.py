"""The tasks, each a few lines that call a verb, and the worker that runs them."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import UUID

import structlog
from procrastinate import App, JobContext, PsycopgConnector, RetryStrategy
from procrastinate.blueprints import Blueprint
from procrastinate.exceptions import ConnectorException, UniqueViolation
from procrastinate.jobs import Status
from procrastinate.manager import JobManager

from app.db.engine import libpq_url
from app.db.queue import COMPRESS, EMBED, INDEX, LINK, STATISTICS, enqueue
from app.errors import Unavailable
from app.index import backfill
from app.index.backfill import embed_waiting, find_unlisted
from app.index.lexical import STALE_AT_WRITES, refresh_all_statistics, refresh_workspace_statistics
from app.index.reembed import drop_retired
from app.links.find import link_turn, many_wait
from app.memories.lifecycle import empty_trash
from app.models.following import FollowingProvider
from app.runs.observations.request import ask_again
from app.runs.observations.settle import compress_waiting
from app.wiring import Services

CONCURRENCY = 2
"""Jobs that one worker runs at once: statistics need not wait for a long embedding."""
POLL_SECONDS = 0.5
"""A new job is announced by NOTIFY; that the one it waited for has ended is announced by nobody. Asking takes 1 ms."""
TURN_SECONDS = 5.0
"""After which long work asks for its own continuation, so that what is more urgent gets its place."""
AGAIN_SECONDS = 10.0
"""Until a part that did not answer is asked again."""
HEARTBEAT_SECONDS, STALLED_SECONDS = 3.0, 15.0
"""How often a worker says that it lives, and after what silence its jobs are given to others: a job that is left behind
bars its kind. One that is done twice does no harm."""
UPKEEP_PRIORITY = 50
"""Above all others: it is short, and asks for what was forgotten."""
STOP_SECONDS = 5.0
"""A job that goes on for longer after a stop is aborted; it is done again at the next start."""
RETRY = RetryStrategy(max_attempts=20, exponential_wait=2, retry_exceptions={Unavailable})

SETTLE_SECONDS = 0.3
"""A writer asks for a worker in the last statements of its transaction: by then it has committed."""

tasks = Blueprint()
logger = structlog.get_logger()


def _services(context: JobContext) -> Services:
    services: Services = context.additional_context["services"]
    return services


@asynccontextmanager
async def _again_when_it_answers(
    services: Services, task: str, *, lock: str | None = None, **arguments: int | str
) -> AsyncIterator[None]:
    """Where a part does not answer, ask for the job anew in AGAIN_SECONDS, unless one is waiting already.

    procrastinate's own retry would fail where one waits, and leave this job under way for ever, which bars its kind.
    """
    try:
        yield
    except Unavailable as error:
        logger.warning("a job is put off", task=task, reason=str(error))
        await _ask(services, task, lock=lock, after=AGAIN_SECONDS, **arguments)


async def _ask(
    services: Services, task: str, *, lock: str | None = None, after: float = 0.0, **arguments: int | str
) -> None:
    async with services.database.transaction() as connection:
        await enqueue(connection, task, lock=lock, after=after, **arguments)


@tasks.task(name=EMBED, pass_context=True, queue="default")
async def embed_waiting_task(context: JobContext) -> None:
    """Embed what waits, for TURN_SECONDS at a time; then ask that workspaces which have grown get their index."""
    services = _services(context)
    async with _again_when_it_answers(services, EMBED):
        await _embed(services)


async def _embed(services: Services) -> None:
    """Looks once more a moment later: a writer that found this job still waiting has relied on it, and may have
    committed after it looked."""
    await _follow(services)
    end = time.monotonic() + TURN_SECONDS
    done = await embed_waiting(services.database, services.provider, seconds=TURN_SECONDS)
    if not done or time.monotonic() < end:
        await asyncio.sleep(SETTLE_SECONDS)
        done += await embed_waiting(services.database, services.provider, seconds=TURN_SECONDS)
    if done:
        logger.info("embedded", memories=done)
        await _ask(services, INDEX)
    if done and time.monotonic() >= end:
        await _ask(services, EMBED)


@tasks.task(name=INDEX, pass_context=True, queue="default")
async def index_vectors_task(context: JobContext, seen: int | None = None) -> None:
    """Give workspaces that have outgrown the exact scan their index, once no more vectors pour in.

    `seen` is what the vectors took POURING_SECONDS ago; a job that has not seen it asks for one that has.
    """
    services = _services(context)
    async with _again_when_it_answers(services, INDEX):
        if not await backfill.lacks_an_index(services.database):
            # A writer that found this job still waiting has relied on it, and may have committed after it looked.
            await asyncio.sleep(SETTLE_SECONDS)
            if not await backfill.lacks_an_index(services.database):
                return
        now = await backfill.vector_bytes(services.database)
        if seen is None or backfill.pouring(seen, now):
            await _ask(services, INDEX, after=backfill.POURING_SECONDS, seen=now)
        elif await backfill.build_indexes(services.database):
            # What was near had to wait for the index.
            await _ask(services, LINK)


@tasks.task(name=LINK, pass_context=True, queue="default")
async def link_waiting_task(context: JobContext, seen: int | None = None) -> None:
    """Find the links of what was stored or embedded, for TURN_SECONDS at a time; many not while vectors pour in.

    `seen` is what the vectors took when the job before it looked.
    """
    services = _services(context)
    async with _again_when_it_answers(services, LINK):
        if await many_wait(services.database):
            now = await backfill.vector_bytes(services.database)
            if seen is None or backfill.pouring(seen, now):
                await _ask(services, LINK, after=backfill.POURING_SECONDS, seen=now)
                return
            # Before a writer asks for it, who has not seen what this one has.
            await _ask(services, LINK, seen=now)
        await _link(services)


async def _link(services: Services) -> None:
    """Once more a moment later, as `_embed` does."""
    done, over = await link_turn(services.database, seconds=TURN_SECONDS)
    if over:
        await asyncio.sleep(SETTLE_SECONDS)
        more, over = await link_turn(services.database, seconds=TURN_SECONDS)
        done += more
    if done:
        logger.info("linked", memories=done)
    if not over:
        await _ask(services, LINK)


@tasks.task(name=STATISTICS, pass_context=True, queue="default")
async def refresh_statistics_task(context: JobContext, workspace_id: int) -> None:
    """Take a workspace's lexical statistics anew, should they have become stale."""
    services, lock = _services(context), f"{STATISTICS}:{workspace_id}"
    async with _again_when_it_answers(services, STATISTICS, lock=lock, workspace_id=workspace_id):
        # A writer that found this job still waiting has relied on it, and commits in this moment.
        await asyncio.sleep(SETTLE_SECONDS)
        await refresh_workspace_statistics(services.database, workspace_id, stale=STALE_AT_WRITES)


@tasks.task(name=COMPRESS, pass_context=True, retry=RETRY, queue="default")
async def compress_task(context: JobContext, workspace_id: int, observation_id: str) -> None:
    """Compress a finished run."""
    services = _services(context)
    await compress_waiting(services.database, services.compressor, workspace_id, UUID(observation_id))


@tasks.periodic(cron="*/5 * * * *")
@tasks.task(name="upkeep", pass_context=True, queueing_lock="upkeep", queue="default", priority=UPKEEP_PRIORITY)
async def upkeep_task(context: JobContext, timestamp: int) -> None:  # noqa: ARG001 - procrastinate passes it
    """Find what no job was enqueued for: a restored backup, a worker that was killed."""
    services = _services(context)
    await drop_retired(services.database)
    await find_unlisted(services.database)
    await ask_again(services.database)
    await empty_trash(services.database, days=services.settings.trash_days)
    for task in (EMBED, INDEX, LINK):
        await _ask(services, task)
    await refresh_all_statistics(services.database)


async def _follow(services: Services) -> None:
    """The worker embeds by the model that the database serves."""
    if isinstance(services.provider, FollowingProvider):
        await services.provider.follow(services.database)


async def release_stalled(manager: JobManager) -> None:
    """Let jobs of workers that were killed be fetched anew; where another of its kind waits, that one does its work."""
    for job in await manager.get_stalled_jobs(seconds_since_heartbeat=STALLED_SECONDS):
        with suppress(ConnectorException):  # another worker was faster
            try:
                await manager.retry_job(job)
            except UniqueViolation:
                await manager.finish_job(job, Status.ABORTED, delete_job=True)


async def _release_for_ever(manager: JobManager) -> None:
    while True:
        try:
            await release_stalled(manager)
        except Exception as error:  # noqa: BLE001 - whatever it was, the next look may succeed
            logger.warning("stalled jobs cannot be looked for", reason=str(error))
        await asyncio.sleep(HEARTBEAT_SECONDS)


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
        "update_heartbeat_interval": HEARTBEAT_SECONDS,
        "stalled_worker_timeout": STALLED_SECONDS,
        "delete_jobs": "successful",
        "install_signal_handlers": False,
        "additional_context": {"services": services},
    }
    async with procrastinate_app(services.database.url).open_async() as app:
        worker = asyncio.create_task(app.run_worker_async(**options))
        stopped = asyncio.create_task(stop.wait())
        releasing = asyncio.create_task(_release_for_ever(app.job_manager))
        try:
            await asyncio.wait({worker, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if worker.done():
                worker.result()
        finally:
            for task in (releasing, stopped, worker):
                task.cancel()
            await asyncio.gather(releasing, stopped, worker, return_exceptions=True)
