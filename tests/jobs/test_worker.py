"""The worker, against a database of its own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from sqlalchemy import text

from app.db.engine import Database
from app.embeddings.backfill import backfill_state
from app.embeddings.provider import EmbeddingProvider, TokenCounter
from app.graph.worker import LayoutWorker
from app.jobs.worker import run_worker
from app.memories.memory import NewMemory
from app.memories.remember import remember
from app.observations.observation import Outcome
from app.observations.record import ask_again, get_observation, request_observation
from app.observations.settle import compress_requested
from app.settings import Settings
from app.wiring import LAYOUT_CACHE, Services


@asynccontextmanager
async def own_services(
    url: str, settings: Settings, provider: EmbeddingProvider, counter: TokenCounter
) -> AsyncIterator[Services]:
    database = Database(url, pool_size=4)
    yield Services(
        settings=replace(settings, database_url=url),
        database=database,
        provider=provider,
        counter=counter,
        layouts=LayoutWorker(settings.data_dir / LAYOUT_CACHE),
    )
    await database.close()


@asynccontextmanager
async def working(services: Services) -> AsyncIterator[None]:
    stop = asyncio.Event()
    worker = asyncio.create_task(run_worker(services, stop))
    try:
        yield
    finally:
        stop.set()
        await worker


async def until_settled(services: Services, *, but_for: str = "") -> None:
    """Until nothing waits and no job is left, but for those of this status."""
    jobs = text(
        "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing') AND task_name <> 'upkeep'"
        f" AND status::text <> '{but_for}'"
    )
    waiting = text("SELECT count(*) FROM pending_embeddings")
    while True:
        async with services.database.statements() as connection:
            if not sum([(await connection.execute(count)).scalar_one() for count in (jobs, waiting)]):
                return
        await asyncio.sleep(0.05)


async def test_a_worker_embeds_what_waits_and_counts_the_words(
    own_database_url: str, settings: Settings, provider: EmbeddingProvider, counter: TokenCounter
) -> None:
    async with own_services(own_database_url, settings, provider, counter) as services:
        notes = [NewMemory(kind="note", body=f"Finding number {number} of the judge") for number in range(5)]
        await remember(services.database, counter, workspace="w", language="english", memories=notes)
        assert await backfill_state(services.database) == 5
        async with working(services):
            await until_settled(services)
        assert await backfill_state(services.database) == 0
        async with services.database.statements() as connection:
            known = text("SELECT document_count FROM lexeme_statistics WHERE lexeme = 'judg'")
            assert (await connection.execute(known)).scalar_one() == 5
            assert (await connection.execute(text("SELECT document_count FROM workspaces"))).scalar_one() == 5


async def test_many_writes_wait_for_one_job(
    own_database_url: str, settings: Settings, provider: EmbeddingProvider, counter: TokenCounter
) -> None:
    async with own_services(own_database_url, settings, provider, counter) as services:
        for number in range(4):
            await remember(
                services.database, counter, workspace="w", language="english",
                memories=[NewMemory(kind="note", body=f"note {number}")],
            )  # fmt: skip
        async with services.database.statements() as connection:
            names = text("SELECT task_name FROM procrastinate_jobs ORDER BY 1")
            assert list((await connection.execute(names)).scalars()) == [
                "embed_waiting",
                "link_waiting",
                "refresh_statistics",
            ]


async def test_a_worker_that_was_killed_leaves_nothing_undone(
    own_database_url: str, settings: Settings, provider: EmbeddingProvider, counter: TokenCounter
) -> None:
    async with own_services(own_database_url, settings, provider, counter) as services:
        notes = [NewMemory(kind="note", body=f"Lesson {number}") for number in range(20)]
        await remember(services.database, counter, workspace="w", language="english", memories=notes)
        killed = asyncio.create_task(run_worker(services, asyncio.Event()))
        await asyncio.sleep(0.05)
        killed.cancel()
        with suppress(asyncio.CancelledError):
            await killed
        await remember(
            services.database, counter, workspace="w", language="english",
            memories=[NewMemory(kind="note", body="One more")],
        )  # fmt: skip
        async with working(services):
            await until_settled(services, but_for="doing")
        assert await backfill_state(services.database) == 0
        async with services.database.statements() as connection:
            assert (await connection.execute(text("SELECT count(*) FROM embeddings"))).scalar_one() == 21


async def test_a_worker_compresses_what_was_asked_for_once(
    own_database_url: str, settings: Settings, provider: EmbeddingProvider, counter: TokenCounter
) -> None:
    """Also what a worker was killed over: a job that never ran, and one that two run at once."""
    outcome = Outcome(task="t", output="The scout verified 12 producers. Three lost their licence in 2025.", run_id="r")
    async with own_services(own_database_url, settings, provider, counter) as services:
        observation_id = await request_observation(
            services.database, workspace="w", language="english", outcome=outcome
        )
        async with services.database.transaction() as connection:
            await connection.execute(text("DELETE FROM procrastinate_jobs"))
        assert await ask_again(services.database) == 1
        assert await ask_again(services.database) == 0
        results = await asyncio.gather(
            *(
                compress_requested(services.database, services.compressor, workspace="w", observation_id=observation_id)
                for _ in range(4)
            )
        )
        assert {(result.outcome, result.memory_id) for result in results} == {("stored", observation_id)}
        again = await request_observation(services.database, workspace="w", language="english", outcome=outcome)
        assert again == observation_id
        async with working(services):
            await until_settled(services)
        async with services.database.statements() as connection:
            assert (await connection.execute(text("SELECT count(*) FROM memories"))).scalar_one() == 1


async def test_a_worker_compresses_what_comes(
    own_database_url: str, settings: Settings, provider: EmbeddingProvider, counter: TokenCounter
) -> None:
    outcome = Outcome(task="t", output="The scout verified 12 producers. Three lost their licence in 2025.")
    async with own_services(own_database_url, settings, provider, counter) as services:
        observation_id = await request_observation(
            services.database, workspace="w", language="english", outcome=outcome
        )
        async with working(services):
            await until_settled(services)
        found = await get_observation(services.database, workspace="w", observation_id=observation_id)
        assert (found.outcome, found.memory_id) == ("stored", observation_id)
