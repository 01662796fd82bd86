"""The worker, against a database of its own."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest
from sqlalchemy import text

from app.db.engine import Database
from app.embeddings import backfill
from app.embeddings.backfill import backfill_state
from app.embeddings.provider import EmbeddingProvider, Matrix, TokenCounter
from app.errors import EmbeddingUnavailable
from app.graph.worker import LayoutWorker
from app.jobs import worker
from app.jobs.worker import run_worker
from app.links import derive
from app.memories.memory import NewMemory
from app.memories.remember import remember
from app.observations.observation import Outcome
from app.observations.record import ask_again, get_observation, request_observation
from app.observations.settle import compress_requested
from app.settings import Settings
from app.wiring import LAYOUT_CACHE, Services
from tests.embeddings.test_reembed import Turned


class Failing(Turned):
    """The real model, which does not answer the first time."""

    def __init__(self, provider: EmbeddingProvider) -> None:
        super().__init__(provider)
        self.asked, self.let_go = asyncio.Event(), asyncio.Event()

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        if not self.asked.is_set():
            self.asked.set()
            await self.let_go.wait()
            raise EmbeddingUnavailable("the model went away")
        return await super().embed_documents(texts)


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
    running = asyncio.create_task(run_worker(services, stop))
    try:
        yield
    finally:
        stop.set()
        await running


async def jobs(services: Services) -> set[tuple[str, str]]:
    """Task and status of each that is not upkeep."""
    listed = text("SELECT task_name, status::text FROM procrastinate_jobs WHERE task_name <> 'upkeep'")
    async with services.database.statements() as connection:
        return {(row.task_name, row.status) for row in await connection.execute(listed)}


async def until_jobs(services: Services, reached: Callable[[set[tuple[str, str]]], bool]) -> None:
    while True:
        if reached(await jobs(services)):
            return
        await asyncio.sleep(0.05)


async def note(services: Services, *bodies: str, workspace: str = "w") -> None:
    notes = [NewMemory(kind="note", body=body) for body in bodies]
    await remember(services.database, services.counter, workspace=workspace, language="english", memories=notes)


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


async def test_another_of_its_kind_takes_no_place_while_links_are_found(
    own_database_url: str, settings: Settings, provider: EmbeddingProvider, counter: TokenCounter
) -> None:
    """Linking is held up by a lock on what it writes; a second job for it waits, and other work is done."""
    async with own_services(own_database_url, settings, provider, counter) as services:
        await note(services, "The first finding of the judge")
        async with services.database.transaction() as holding:
            await holding.execute(text("LOCK TABLE titles"))
            async with working(services):
                await until_jobs(services, lambda found: ("link_waiting", "doing") in found)
                for number in range(3):
                    await note(services, f"Finding {number} of the scout", workspace="fresh")
                alone = {("link_waiting", "doing"), ("link_waiting", "todo")}
                await until_jobs(services, lambda found: found == alone)
                assert await backfill_state(services.database) == 0
                async with services.database.statements() as connection:
                    counted = text("SELECT document_count FROM workspaces ORDER BY workspace_id")
                    assert list((await connection.execute(counted)).scalars()) == [1, 3]
                await holding.commit()
                await until_settled(services)
        async with services.database.statements() as connection:
            assert (await connection.execute(text("SELECT count(*) FROM pending_links"))).scalar_one() == 0


async def test_long_work_gives_way_and_comes_to_its_end(
    own_database_url: str,
    settings: Settings,
    provider: EmbeddingProvider,
    counter: TokenCounter,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One batch a turn: each asks for the next, and nothing is left."""
    monkeypatch.setattr(worker, "TURN_SECONDS", 0.0)
    monkeypatch.setattr(backfill, "BATCH", 3)
    monkeypatch.setattr(backfill, "POURING_SECONDS", 0.1)
    for name, value in {"BATCH": 3, "VECTOR_BATCH": 3, "MANY": 5}.items():
        monkeypatch.setattr(derive, name, value)
    async with own_services(own_database_url, settings, provider, counter) as services:
        await note(services, *(f"Finding {number} of the judge" for number in range(10)))
        async with working(services):
            await until_settled(services)
        async with services.database.statements() as connection:
            assert (await connection.execute(text("SELECT count(*) FROM pending_links"))).scalar_one() == 0
            turns = text("SELECT last_value FROM procrastinate_jobs_id_seq")
            assert (await connection.execute(turns)).scalar_one() > 3 + 4


@pytest.mark.parametrize("another_waits", [True, False])
async def test_what_a_killed_worker_had_under_way_bars_nothing(
    own_database_url: str,
    settings: Settings,
    provider: EmbeddingProvider,
    counter: TokenCounter,
    *,
    another_waits: bool,
) -> None:
    async with own_services(own_database_url, settings, provider, counter) as services:
        await note(services, "The first finding of the judge")
        async with services.database.transaction() as connection:
            silent = "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - interval '20 s') RETURNING id"
            killed = (await connection.execute(text(silent))).scalar_one()
            taken = text("UPDATE procrastinate_jobs SET status = 'doing', worker_id = :killed")
            await connection.execute(taken, {"killed": killed})
        if another_waits:
            await note(services, "The second finding of the judge")
        async with working(services):
            await until_settled(services)
        assert await backfill_state(services.database) == 0
        assert await jobs(services) == set()


async def test_a_part_that_does_not_answer_is_asked_again(
    own_database_url: str,
    settings: Settings,
    provider: EmbeddingProvider,
    counter: TokenCounter,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where the job that failed finds another of its kind waiting."""
    monkeypatch.setattr(worker, "AGAIN_SECONDS", 0.1)
    failing = Failing(provider)
    async with own_services(own_database_url, settings, failing, counter) as services:
        await note(services, "The first finding of the judge")
        async with working(services):
            await failing.asked.wait()
            await note(services, "The second finding of the judge")
            failing.let_go.set()
            await until_settled(services)
        assert await jobs(services) == set()
        assert await backfill_state(services.database) == 0
