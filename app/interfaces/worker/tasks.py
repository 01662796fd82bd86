"""The tasks of a worker, each a few lines that call a verb."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Concatenate, TypeAlias
from uuid import UUID

import structlog
from procrastinate import JobContext, RetryStrategy
from procrastinate.blueprints import Blueprint
from procrastinate.tasks import Task

from app.errors import Unavailable
from app.foundation.db.audit import WORKER, Actor, act_as
from app.foundation.db.session import COMPRESS, DECIDE, EMBED, EMBED_CUES, EXTRACT, INDEX, LINK, MATCH, STATISTICS
from app.operations.access import sweep_entries
from app.operations.maintenance import Maintenance, empty_trash
from app.recall.cues.review.review import owners_of_cues
from app.storage.index import service as indexes
from app.storage.index.indexing import STALE_AT_WRITES
from app.storage.links.service import many_pending
from app.storage.tenants.workspace import NOBODY
from app.wiring import Services

SLICE_SECONDS = 5.0
"""Time after which long work asks for its own continuation, so that more urgent work gets its place."""
AGAIN_SECONDS = 10.0
"""Time until a job runs again after a part of the service did not answer."""
_UPKEEP_PRIORITY = 50
"""Priority of upkeep, the highest: upkeep is short, and finds work without a job."""
_RETRY = RetryStrategy(max_attempts=20, exponential_wait=2, retry_exceptions={Unavailable})
SETTLE_SECONDS = 0.3
"""Time within which a writer commits after it has enqueued a job at the end of its transaction."""
_OF_A_SUBJECT, _OF_ALL = frozenset({MATCH, EXTRACT, DECIDE, STATISTICS}), frozenset({EMBED, EMBED_CUES, INDEX, LINK})
"""The tasks that are put off: those of one subject, and those that take what is pending."""

_Work: TypeAlias = Callable[Concatenate[Services, ...], Awaitable[None]]

tasks = Blueprint()
logger = structlog.get_logger()


def services_of(context: JobContext) -> Services:
    """Returns the services for a job, which the audit log names from here on."""
    act_as(Actor(WORKER, operation=f"job {context.job.task_name}", request_id=str(context.job.id or "")))
    services: Services = context.additional_context["services"]
    return services


def _task(name: str, **options: Any) -> Callable[[_Work], Task[..., Any, ...]]:  # noqa: ANN401 - the library's own
    """Makes a task of work on the services, which it gets in place of the job."""

    def register(work: _Work) -> Task[..., Any, ...]:
        @tasks.task(name=name, pass_context=True, **options)
        async def run(context: JobContext, /, **arguments: Any) -> None:  # noqa: ANN401 - the task's own
            await work(services_of(context), **arguments)

        return run

    return register


async def put_off(call_next: Callable[[], Awaitable[Any]], context: JobContext, _worker: object) -> object:
    """Runs a job; enqueues it again for AGAIN_SECONDS later if a part does not answer, unless one is queued already.

    procrastinate's own retry would fail if another job is queued, and would leave this job in the state of running,
    which blocks all jobs of its kind. A job of one subject, which has a lock of its own, begins SETTLE_SECONDS later: a
    writer that saw it in the queue has enqueued none, and commits at this moment.
    """
    task, lock = context.job.task_name, context.job.queueing_lock
    try:
        if task in _OF_A_SUBJECT:
            await asyncio.sleep(SETTLE_SECONDS)
        return await call_next()
    except Unavailable as error:
        if task not in _OF_A_SUBJECT | _OF_ALL:
            raise
        logger.warning("a job is put off", task=task, reason=str(error))
        arguments: dict[str, Any] = context.job.task_kwargs
        await _ask(services_of(context), task, lock=lock, after=AGAIN_SECONDS, **arguments)
        return None


async def _ask(
    services: Services, task: str, *, lock: str | None = None, after: float = 0.0, **arguments: int | str
) -> None:
    async with services.database.across() as session:
        await session.enqueue(task, lock=lock, after=after, **arguments)


@_task(EMBED)
async def embed_pending_task(services: Services) -> None:
    """Embeds pending memories, for SLICE_SECONDS at a time; then asks for the indexes of large workspaces.

    It embeds twice, a moment apart: a writer that saw this job in the queue has enqueued none, and may commit after the
    first pass.
    """
    await services.embedder.follow()
    end = time.monotonic() + SLICE_SECONDS
    done = await services.embedder.embed_all_pending(services.database.across, seconds=SLICE_SECONDS)
    if not done or time.monotonic() < end:
        await asyncio.sleep(SETTLE_SECONDS)
        done += await services.embedder.embed_all_pending(services.database.across, seconds=SLICE_SECONDS)
    if done:
        logger.info("embedded", memories=done)
        await _ask(services, INDEX)
    if done and time.monotonic() >= end:
        await _ask(services, EMBED)


@_task(INDEX)
async def index_vectors_task(services: Services, seen: int | None = None) -> None:
    """Builds the indexes of workspaces that are too large for the exact scan, after their bulk intake has ended.

    `seen` is the size of the vectors POURING_SECONDS ago, in bytes; a job without it enqueues one that has it.
    """
    across = services.database.across
    if not await indexes.lacks_an_index(across):
        # A writer that saw this job in the queue has enqueued none, and may have committed after the check.
        await asyncio.sleep(SETTLE_SECONDS)
        if not await indexes.lacks_an_index(across):
            return
    now = await indexes.vector_bytes(across)
    if seen is None or indexes.pouring(seen, now):
        await _ask(services, INDEX, after=indexes.POURING_SECONDS, seen=now)
    elif await indexes.build_indexes(across):
        # Links by vectors had to wait for the index.
        await _ask(services, LINK)


@_task(LINK)
async def link_pending_task(services: Services, seen: int | None = None) -> None:
    """Links new texts and vectors, for SLICE_SECONDS at a time; if there are many, after their bulk intake has ended.

    `seen` is the size of the vectors at the check of the job before, in bytes.
    """
    across = services.database.across
    if await many_pending(across):
        now = await indexes.vector_bytes(across)
        if seen is None or indexes.pouring(seen, now):
            await _ask(services, LINK, after=indexes.POURING_SECONDS, seen=now)
            return
        # Before a writer enqueues the job without this size.
        await _ask(services, LINK, seen=now)
    # Twice, a moment apart, as it embeds.
    done, over = await services.links.link_pending(across, seconds=SLICE_SECONDS)
    if over:
        await asyncio.sleep(SETTLE_SECONDS)
        more, over = await services.links.link_pending(across, seconds=SLICE_SECONDS)
        done += more
    if done:
        logger.info("linked", memories=done)
    if not over:
        await _ask(services, LINK)


@_task(MATCH)
async def match_issues_task(services: Services, workspace_id: int) -> None:
    """Matches the issues of a workspace's cases over their versions."""
    await services.cases.match((await services.workspaces.resolve_id(workspace_id)).of(NOBODY))


@_task(EXTRACT)
async def extract_cues_task(services: Services, workspace_id: int, session_id: str) -> None:
    """Makes cues and procedures of a session that has changed, and retires those of one that was deleted."""
    workspace = await services.workspaces.resolve_id(workspace_id)
    owned = await services.session_intake.of_owner(workspace, session_id)
    await services.extraction.extract_session(owned, session_id)
    await services.mining.mine(owned, session_id)


@_task(DECIDE)
async def extract_decision_task(services: Services, workspace_id: int, source_id: str) -> None:
    """Makes a cue of a decision record that has changed, and retires that of one that was deleted."""
    workspace = (await services.workspaces.resolve_id(workspace_id)).of(NOBODY)
    await services.extraction.extract_decision(workspace, UUID(source_id))


@_task(EMBED_CUES)
async def embed_cues_task(services: Services) -> None:
    """Embeds cues that lack vectors of the served model, for SLICE_SECONDS at a time."""
    await services.embedder.follow()
    # A writer that saw this job in the queue has enqueued none, and commits at this moment.
    await asyncio.sleep(SETTLE_SECONDS)
    end = time.monotonic() + SLICE_SECONDS
    done = await services.cues.embed_lacking(services.database.across, seconds=SLICE_SECONDS)
    if done:
        logger.info("embedded", cues=done)
    if done and time.monotonic() >= end:
        await _ask(services, EMBED_CUES)


@_task(STATISTICS)
async def refresh_statistics_task(services: Services, workspace_id: int) -> None:
    """Counts a workspace's lexical statistics again if they are stale."""
    await services.statistics.refresh(services.database.across, workspace_id, stale=STALE_AT_WRITES)


@_task(COMPRESS, retry=_RETRY)
async def compress_task(services: Services, workspace_id: int, observation_id: str) -> None:
    """Compresses a finished run."""
    workspace = await services.workspaces.resolve_id(workspace_id)
    asked = UUID(observation_id)
    workspace = await services.observations.for_owner(workspace, asked)
    await services.observations.make_pending(workspace, asked)


@tasks.periodic(cron="*/5 * * * *")
@_task("upkeep", queueing_lock="upkeep", priority=_UPKEEP_PRIORITY)
async def upkeep_task(services: Services, timestamp: int) -> None:  # noqa: ARG001 - procrastinate passes it
    """Finds work without a job, as after a restored backup or a killed worker."""
    database, across = services.database, services.database.across
    await services.model_moves.drop_retired(across)
    await indexes.queue_lacking(across)
    await services.observations.ask_again(across)
    await services.runs.read_judgements(across)
    await empty_trash(across, days=services.settings.trash_days)
    await sweep_entries(across, days=services.settings.audit_days)
    await Maintenance(database=database).count_accesses(across)
    for task in (EMBED, EMBED_CUES, INDEX, LINK):
        await _ask(services, task)
    for workspace_id in await services.cases.workspaces_to_match(across):
        await _ask(services, MATCH, lock=f"{MATCH}:{workspace_id}", workspace_id=workspace_id)
    await services.statistics.refresh_all(across)


@tasks.periodic(cron="17 3 * * *")
@_task("tend_cues", queueing_lock="tend_cues")
async def tend_cues_task(services: Services, timestamp: int) -> None:  # noqa: ARG001 - procrastinate passes it
    """Looks through the cues of each workspace: judges precedents, merges near-duplicates, proposes other changes."""
    for workspace_id, user in await owners_of_cues(services.database.across):
        workspace = (await services.workspaces.resolve_id(workspace_id)).of(user)
        await services.mining.judge_precedents(workspace)
        await services.reviews.review(workspace)


@tasks.periodic(cron="41 * * * *")
@_task("estimate_effects", queueing_lock="estimate_effects")
async def estimate_effects_task(services: Services, timestamp: int) -> None:  # noqa: ARG001 - procrastinate passes it
    """Estimates what memories did to later runs, in each workspace where a scored run has changed."""
    await services.effects.estimate_all(services.database.across)
