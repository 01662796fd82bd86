"""The worker, against a database of its own."""

import asyncio
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job
from procrastinate.manager import JobManager

from app.foundation.db.session import COMPRESS, DECIDE, EXTRACT, MATCH, STATISTICS
from app.intake.runs.observations.observation import Outcome
from app.intake.sessions.transcript import Turn
from app.interfaces.worker import tasks
from app.interfaces.worker.worker import run_worker
from app.operations.maintenance import Maintenance
from app.storage.index import service as indexes
from app.storage.index.service import pending_counts
from app.storage.links import service
from app.wiring import Services
from tests.conftest import workspace_in
from tests.fakes.providers import Failing
from tests.interfaces.worker.working import jobs, note, until_jobs, until_settled, working

CORRECTED = [
    Turn(ordinal=place, role=role, text=text)
    for place, (role, text) in enumerate(
        [
            ("user", "plot the sales by month"),
            ("assistant", "I've added the chart. The y axis shows revenue."),
            ("user", "No, always put the units on both axes, in every chart we draw"),
        ]
    )
]
"""A session in which the rules find a cue."""
"""A session in which the rules find two cues."""
OUTCOME = Outcome(task="t", output="The scout verified 12 producers. Three lost their licence in 2025.")


async def test_a_worker_embeds_what_waits_and_counts_the_words(own_services: Services) -> None:
    await note(own_services, *(f"Finding number {number} of the judge" for number in range(5)))
    assert (await pending_counts(own_services.database.across))[0] == 5
    async with working(own_services):
        await until_settled(own_services)
    assert (await pending_counts(own_services.database.across))[0] == 0
    async with own_services.database.across() as session:
        known = "SELECT document_count FROM lexeme_statistics WHERE lexeme = 'judg'"
        assert await session.value(known) == 5
        assert await session.value("SELECT document_count FROM workspaces") == 5


async def test_many_writes_wait_for_one_job(own_services: Services) -> None:
    for number in range(4):
        await note(own_services, f"note {number}")
    async with own_services.database.across() as session:
        names = "SELECT task_name FROM procrastinate_jobs ORDER BY 1"
        assert await session.column(names) == [
            "embed_waiting",
            "link_waiting",
            "refresh_statistics",
        ]


async def test_a_worker_that_was_killed_leaves_nothing_undone(own_services: Services) -> None:
    await note(own_services, *(f"Lesson {number}" for number in range(20)))
    killed = asyncio.create_task(run_worker(own_services, asyncio.Event()))
    await asyncio.sleep(0.05)
    killed.cancel()
    with suppress(asyncio.CancelledError):
        await killed
    await note(own_services, "One more")
    async with working(own_services):
        await until_settled(own_services, but_for="doing")
    assert (await pending_counts(own_services.database.across))[0] == 0
    async with own_services.database.across() as session:
        assert await session.value("SELECT count(*) FROM embeddings") == 21


async def test_a_worker_ends_where_the_pool_makes_another_error_of_a_cancellation(
    own_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asyncio.Event()

    async def cut_off(_manager: JobManager, **_: object) -> list[Job]:
        asked.set()
        try:
            await asyncio.sleep(3_600)
        except asyncio.CancelledError:
            raise ConnectorException from None
        return []

    monkeypatch.setattr(JobManager, "get_stalled_jobs", cut_off)
    running = asyncio.create_task(run_worker(own_services, asyncio.Event()))
    await asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_job_ends_with_its_workspace(own_services: Services) -> None:
    """Also one that runs while its workspace is erased: the worker could not note the end of a job that is gone."""
    database = own_services.database
    await note(own_services, "Finding of the judge")
    workspace = await workspace_in(database, "w")
    async with database.session(workspace) as session:
        for task, more in (
            (STATISTICS, {}),
            (MATCH, {}),
            (EXTRACT, {"session_id": "s"}),
            (DECIDE, {"source_id": str(UUID(int=1))}),
            (COMPRESS, {"observation_id": str(UUID(int=1))}),
        ):
            given: dict[str, Any] = {"workspace_id": workspace.workspace_id, **more}
            await session.enqueue(task, lock=task, **given)
    own = "FROM procrastinate_jobs WHERE args ? 'workspace_id'"
    async with database.across() as session:
        assert (
            await session.execute(f"UPDATE procrastinate_jobs SET status = 'doing' WHERE id IN (SELECT id {own})") > 4
        )
    await Maintenance(database=database).erase_workspace(workspace)
    async with database.across() as session:
        await session.execute(f"UPDATE procrastinate_jobs SET status = 'todo' WHERE id IN (SELECT id {own})")
        assert await session.value(f"SELECT count(*) {own}") > 4
    async with working(own_services):
        await until_settled(own_services)
    assert await jobs(own_services) == set()


async def test_a_worker_compresses_what_was_asked_for_once(own_services: Services) -> None:
    """Also what a worker was killed over: a job that never ran, and one that two run at once."""
    outcome = Outcome(task="t", output="The scout verified 12 producers. Three lost their licence in 2025.", run_id="r")
    workspace = await workspace_in(own_services.database, "w")
    observation_id = await own_services.observations.request(workspace, outcome)
    async with own_services.database.across() as session:
        await session.execute("DELETE FROM procrastinate_jobs")
    assert await own_services.observations.ask_again(own_services.database.across) == 1
    assert await own_services.observations.ask_again(own_services.database.across) == 0
    observations = own_services.observations
    results = await asyncio.gather(*(observations.make(workspace, observation_id) for _ in range(4)))
    assert {(result.outcome, result.memory_id) for result in results} == {("stored", observation_id)}
    again = await own_services.observations.request(workspace, outcome)
    assert again == observation_id
    async with working(own_services):
        await until_settled(own_services)
    async with own_services.database.across() as session:
        assert await session.value("SELECT count(*) FROM memories") == 1


async def test_a_worker_compresses_what_comes(own_services: Services) -> None:
    workspace = await workspace_in(own_services.database, "w")
    observation_id = await own_services.observations.request(workspace, OUTCOME)
    async with working(own_services):
        await until_settled(own_services)
    found = await own_services.observations.get(workspace, observation_id)
    assert (found.outcome, found.memory_id) == ("stored", observation_id)


async def test_another_of_its_kind_takes_no_place_while_links_are_found(own_services: Services) -> None:
    """Linking is held up by a lock on what it writes; a second job for it waits, and other work is done."""
    await note(own_services, "The first finding of the judge")
    async with AsyncExitStack() as holding:
        session = await holding.enter_async_context(own_services.database.across())
        await session.execute("LOCK TABLE titles")
        async with working(own_services):
            await until_jobs(own_services, lambda found: ("link_waiting", "doing") in found)
            for number in range(3):
                await note(own_services, f"Finding {number} of the scout", workspace="fresh")
            alone = {("link_waiting", "doing"), ("link_waiting", "todo")}
            await until_jobs(own_services, lambda found: found == alone)
            assert (await pending_counts(own_services.database.across))[0] == 0
            async with own_services.database.across() as session:
                # A slow writer's last note may come after the count, which then is not stale.
                assert 0 not in await session.column("SELECT document_count FROM workspaces")
            await holding.aclose()
            await until_settled(own_services)
    async with own_services.database.across() as session:
        assert await session.value("SELECT count(*) FROM pending_links") == 0


async def test_long_work_gives_way_and_comes_to_its_end(
    own_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Does one batch a slice: each asks for the next, and nothing is left."""
    monkeypatch.setattr(tasks, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(indexes, "BATCH", 3)
    monkeypatch.setattr(indexes, "POURING_SECONDS", 0.1)
    for name, value in {"BATCH": 3, "VECTOR_BATCH": 3, "MANY": 5}.items():
        monkeypatch.setattr(service, name, value)
    await note(own_services, *(f"Finding {number} of the judge" for number in range(10)))
    async with working(own_services):
        await until_settled(own_services)
    async with own_services.database.across() as session:
        assert await session.value("SELECT count(*) FROM pending_links") == 0
        jobs = "SELECT last_value FROM procrastinate_jobs_id_seq"
        assert await session.value(jobs) > 3 + 4


@pytest.mark.parametrize("another_waits", [True, False])
async def test_what_a_killed_worker_had_under_way_bars_nothing(own_services: Services, *, another_waits: bool) -> None:
    await note(own_services, "The first finding of the judge")
    async with own_services.database.across() as session:
        silent = "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - interval '20 s') RETURNING id"
        killed = await session.value(silent)
        taken = "UPDATE procrastinate_jobs SET status = 'doing', worker_id = %(killed)s"
        await session.execute(taken, {"killed": killed})
    if another_waits:
        await note(own_services, "The second finding of the judge")
    async with working(own_services):
        await until_settled(own_services)
    assert (await pending_counts(own_services.database.across))[0] == 0
    assert await jobs(own_services) == set()


async def test_a_part_that_does_not_answer_is_asked_again(
    own_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the job that failed finds another of its kind waiting."""
    monkeypatch.setattr(tasks, "AGAIN_SECONDS", 0.1)
    failing = Failing(own_services.provider)
    services = replace(own_services, provider=failing)
    await note(services, "The first finding of the judge")
    async with working(services):
        await failing.asked.wait()
        await note(services, "The second finding of the judge")
        failing.let_go.set()
        await until_settled(services)
    assert await jobs(services) == set()
    assert (await pending_counts(services.database.across))[0] == 0
