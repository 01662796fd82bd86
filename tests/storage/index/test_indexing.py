"""Vector indexes: built once, after the vectors that pour in."""

import asyncio
import itertools
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import pytest_asyncio

from app.errors import StorageFull
from app.foundation.db.database import Database
from app.foundation.db.session import Session
from app.interfaces.worker import tasks
from app.recall.retrieval.recall import Query
from app.recall.retrieval.service import Retrieval
from app.storage.index import indexing, models, service
from app.storage.index import vectors as store
from app.storage.index.indexing import OUTGROWN, STALE_AT_WRITES, inform_planner
from app.storage.index.models import StoredModel
from app.storage.index.service import (
    Embedder,
    Statistics,
    build_indexes,
    lacks_an_index,
    pending_counts,
    pouring,
    vector_bytes,
)
from app.storage.links import lookup
from app.storage.links import service as links
from app.storage.links.service import Links, many_pending
from app.storage.memories.memory import GivenVector, NewMemory
from app.storage.memories.remember import WriteGate
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from tests.conftest import workspace_in
from tests.fakes.providers import Counting, Slow
from tests.interfaces.worker.working import note, until_settled, working

FEW = 20


async def remember_with_vectors(services: Services, start: int = 0) -> None:
    """As many as an index is built for, each told from the others by its vector alone."""
    database, provider = services.database, services.provider
    await Embedder(database=database, provider=provider).serving_model()
    vectors = np.random.default_rng(7).normal(size=(FEW, provider.dimension)).astype("<f4")
    memories = [
        NewMemory(
            kind="note",
            body=f"note number {place} of many",
            embedding=GivenVector(model=provider.model_id, vector=vector.tobytes()),
        )
        for place, vector in enumerate(vectors, start)
    ]
    done = await WriteGate(database=database, counter=services.counter).remember(
        await workspace_in(database, "w"), memories
    )
    assert done.stored == FEW


@pytest_asyncio.fixture
async def filled(own_services: Services) -> Services:
    """Services over a database of their own that holds these memories."""
    await remember_with_vectors(own_services)
    return own_services


async def indexes(database: Database) -> list[str]:
    async with database.across() as session:
        names = "SELECT relname FROM pg_class WHERE relname LIKE '%%\\_hnsw' AND relkind = 'i'"
        return await session.column(names)


@pytest.mark.one_server("each node counts the rows of its shards itself")
async def test_the_planner_learns_of_every_table_that_has_grown(database: Database, workspace: Workspace) -> None:
    filled = """
    INSERT INTO maps (workspace_id, kind, node_limit, clusters, memory_ids, xs, ys, members, computed_at)
    SELECT %(id)s, 'note', i, '[]', '{}', '{}', '{}', '{}', now() FROM generate_series(1, 20000) AS i
    """
    known = "SELECT reltuples FROM pg_class WHERE relname = 'maps'"
    async with database.across() as session:
        tables = set(await session.column(OUTGROWN, {"times": -1}))
        assert await session.execute(filled, {"id": workspace.workspace_id}) == 20_000
        await inform_planner(session)
        assert await session.value(known) >= 20_000
        await session.execute("DELETE FROM maps WHERE workspace_id = %(id)s", {"id": workspace.workspace_id})
    assert tables >= {"memories", "lexical", "cues", "cue_evidence", "artifact_touches", "session_acts", "contexts"}


async def test_the_planner_waits_for_no_lock(database: Database) -> None:
    async with database.across() as holding, database.across() as session:
        await holding.execute("LOCK TABLE titles")
        await session.execute("SET LOCAL lock_timeout = 500")
        await inform_planner(session)


async def test_two_that_build_at_once_build_it_once(filled: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    database, provider = filled.database, filled.provider
    monkeypatch.setattr(store, "INDEXED_FROM", FEW)
    workspace = await workspace_in(database, "w")
    exact = await Retrieval(database=database, provider=provider).search(workspace, Query(text="a note", k=5))
    assert sum(await asyncio.gather(*(build_indexes(database.across) for _ in range(3)))) == 1
    assert await build_indexes(database.across) == 0
    assert len(await indexes(database)) == 1
    found = await Retrieval(database=database, provider=provider).search(workspace, Query(text="a note", k=5))
    assert [hit.memory.memory_id for hit in found.hits] == [hit.memory.memory_id for hit in exact.hits]


@pytest.mark.one_server("each node builds an index in its own maintenance_work_mem")
async def test_an_index_is_built_in_memory_if_there_is_enough(
    filled: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, provider = filled.database, filled.provider
    monkeypatch.setattr(store, "INDEXED_FROM", FEW)
    monkeypatch.setattr(store, "LINK_BYTES", 100_000)
    seen = list[str]()
    create = store._create_index

    async def noting(session: Session, model: StoredModel, workspace_id: int) -> None:
        seen.append(await session.value("SHOW maintenance_work_mem"))
        if len(seen) == 1:
            raise StorageFull("no shared memory")
        await create(session, model, workspace_id)

    monkeypatch.setattr(store, "_create_index", noting)
    async with database.across(transaction=False) as session:
        usual = await session.value("SHOW maintenance_work_mem")
        await session.execute("SET maintenance_work_mem = '64kB'")
        model = await models.active_model(session)
        assert model is not None
        assert await store.build_indexes(session, model) == 1
        assert await session.value("SHOW maintenance_work_mem") == usual
    assert seen == [f"{FEW * (100_000 + 2 * provider.dimension) // 1024}kB", usual]


async def test_a_workspace_that_has_its_index_is_not_counted(filled: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    database = filled.database
    monkeypatch.setattr(store, "INDEXED_FROM", FEW)
    assert await lacks_an_index(database.across)
    assert await build_indexes(database.across) == 1
    monkeypatch.setattr(store, "REACHES", "SELECT 1 / 0")
    assert not await lacks_an_index(database.across)


async def test_small_workspaces_are_not_counted(filled: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are, the same two statements find them small by their statistics."""
    database = filled.database
    asked = list[str]()
    run = Session._run

    async def noting(session: Session, statement: str, *given: Any, **options: Any) -> Any:
        asked.append(statement)
        return await run(session, statement, *given, **options)

    monkeypatch.setattr(Session, "_run", noting)

    async def statements() -> int:
        asked.clear()
        assert not await lacks_an_index(database.across)
        return len(asked)

    uncounted = await statements()
    await Statistics(database=database).refresh_all(database.across)
    counted = await statements()
    assert uncounted == counted + 1
    async with database.across() as session:
        await session.execute(
            "INSERT INTO workspaces (name, language, languages, statistics_at)"
            " SELECT 'small ' || i, 'english', '{english}', now() FROM generate_series(1, 30) AS i"
        )
    assert await statements() == counted


async def test_a_workspace_that_outgrows_its_statistics_is_noticed(
    filled: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = filled.database
    counted = partial(filled.statistics.refresh_all, filled.database.across, stale=STALE_AT_WRITES)
    assert await counted() == 1
    await remember_with_vectors(filled, FEW)
    assert await counted() == 0, "twice as many are no reason to count again"
    monkeypatch.setattr(store, "INDEXED_FROM", 2 * FEW)
    assert await lacks_an_index(database.across)
    monkeypatch.setattr(store, "INDEXED_FROM", 2 * FEW + 1)
    assert not await lacks_an_index(database.across)


async def test_further_passages_count_towards_an_index(filled: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    database = filled.database
    assert await Statistics(database=database).refresh_all(database.across) == 1
    monkeypatch.setattr(store, "INDEXED_FROM", 3 * FEW)
    assert not await lacks_an_index(database.across)
    async with database.across() as session:
        await session.execute(
            "INSERT INTO embeddings (workspace_id, memory_id, model_id, passage, embedding)"
            " SELECT workspace_id, memory_id, model_id, further, embedding"
            " FROM embeddings CROSS JOIN generate_series(1, 2) AS further"
        )
    assert await lacks_an_index(database.across)


async def test_a_large_workspace_is_not_counted_at_each_write(
    filled: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = partial(filled.statistics.refresh_all, filled.database.across)
    assert await counted(stale=STALE_AT_WRITES) == 1
    await remember_with_vectors(filled, FEW)
    monkeypatch.setattr(indexing, "COUNTED_AT_WRITES", FEW - 1)
    assert await counted(stale=STALE_AT_WRITES) == 0
    assert await counted() == 1


async def test_what_is_near_is_found_once_there_is_an_index(filled: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    database = filled.database
    monkeypatch.setattr(store, "INDEXED_FROM", FEW)

    async def waiting() -> list[str]:
        async with database.across() as session:
            return await session.column("SELECT step FROM pending_links")

    assert (await Links(database=database).link_pending(database.across)).memories == FEW
    assert await waiting() == ["vectors"] * FEW
    await build_indexes(database.across)
    await Links(database=database).link_pending(database.across)
    assert await waiting() == []
    async with database.session(await workspace_in(database, "w")) as session:
        model = await models.active_model(session)
        assert model is not None
        await lookup.nearest(session, model, [], count=1, least=0.5, indexed=True)
        closeness = [await session.value("SHOW hnsw.ef_search")]
    async with database.session(await workspace_in(database, "w")) as session:
        closeness.append(await session.value("SHOW hnsw.ef_search"))
    assert closeness == ["100", "200"]


async def test_what_waits_for_an_index_does_not_keep_the_worker_from_resting(
    filled: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More wait than are linked while more come, and none can be linked before the index is there."""
    database = filled.database
    monkeypatch.setattr(store, "INDEXED_FROM", FEW)
    monkeypatch.setattr(links, "MANY", FEW - 1)
    assert await many_pending(database.across)
    await Links(database=database).link_pending(database.across)
    assert not await many_pending(database.across)


async def test_a_request_and_a_worker_share_what_they_embed(
    own_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "GROUP", FEW // 5)
    provider, database = Counting(own_services.provider), own_services.database
    await note(own_services, *(f"Finding {number} of the judge" for number in range(FEW)))
    workspace = await workspace_in(database, "w")

    await asyncio.gather(
        Embedder(database=database, provider=provider).embed_pending(workspace),
        Embedder(database=database, provider=provider).embed_all_pending(database.across),
    )

    assert (await pending_counts(database.across))[0] == 0
    assert FEW <= provider.embedded <= FEW + service.GROUP


async def test_an_index_is_built_before_all_is_embedded(
    own_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(service, "BATCH", FEW)
    monkeypatch.setattr(service, "POURING_SECONDS", 0.1)
    monkeypatch.setattr(store, "INDEXED_FROM", FEW)
    slow = Slow(own_services.provider, held=True)
    await note(own_services, *(f"Finding {number} of the judge" for number in range(FEW + 1)))
    async with working(replace(own_services, provider=slow)):
        while True:
            if await indexes(own_services.database):
                break
            await asyncio.sleep(0.05)
        assert (await pending_counts(own_services.database.across))[0] == 1
        slow.let_go.set()
        await until_settled(own_services)


async def test_a_worker_builds_it_when_no_more_come(own_services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "INDEXED_FROM", FEW)
    monkeypatch.setattr(service, "POURING_SECONDS", 0.1)
    async with working(own_services):
        await remember_with_vectors(own_services)
        await until_settled(own_services)
        assert len(await indexes(own_services.database)) == 1
        async with own_services.database.across() as session:
            assert await session.value("SELECT count(*) FROM pending_links") == 0


async def test_what_pours_in_is_noticed(own_services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "POURING_BYTES", 1)
    database = own_services.database
    await Embedder(database=database, provider=own_services.provider).serving_model()
    before = await vector_bytes(database.across)
    assert not pouring(before, await vector_bytes(database.across))
    for start in itertools.count(0, FEW):
        await remember_with_vectors(own_services, start)
        if pouring(before, now := await vector_bytes(database.across)):
            break
    assert not pouring(now, await vector_bytes(database.across))


async def test_the_vectors_of_a_new_model_are_their_workspaces_alone(filled: Services) -> None:
    """The service may write the partition that was made for it, and sees no other workspace's vectors in it."""
    database, provider = filled.database, filled.provider
    model = await Embedder(database=database, provider=provider).serving_model()
    assert model is not None
    counts = []
    for name in ("w", "other"):
        async with database.session(await workspace_in(database, name)) as session:
            counts.append(await session.value(f"SELECT count(*) FROM {model.partition}"))
    assert counts == [FEW, 0]
