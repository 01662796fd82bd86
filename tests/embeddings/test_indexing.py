"""Vector indexes: built once, after the vectors that pour in."""

import asyncio
import itertools

import numpy as np
import pytest
from sqlalchemy import text

from app.db.engine import Database
from app.embeddings import backfill, store
from app.embeddings.backfill import build_indexes, pouring, serving_model, vector_bytes
from app.embeddings.provider import EmbeddingProvider, TokenCounter
from app.links.derive import link_waiting
from app.memories.memory import GivenVector, NewMemory
from app.memories.remember import remember
from app.retrieval.query import Query
from app.retrieval.search import search
from app.settings import Settings
from tests.jobs.test_worker import own_services, until_settled, working

FEW = 20


async def remember_with_vectors(
    database: Database, counter: TokenCounter, provider: EmbeddingProvider, start: int = 0
) -> None:
    """As many as an index is built for, each told from the others by its vector alone."""
    await serving_model(database, provider)
    vectors = np.random.default_rng(7).normal(size=(FEW, provider.dimension)).astype("<f4")
    memories = [
        NewMemory(
            kind="note",
            body=f"note number {place} of many",
            embedding=GivenVector(model=provider.model_id, numbers=vector.tobytes()),
        )
        for place, vector in enumerate(vectors, start)
    ]
    done = await remember(database, counter, workspace="w", language="english", memories=memories)
    assert done.stored == FEW


async def indexes(database: Database) -> list[str]:
    async with database.statements() as connection:
        names = text("SELECT relname FROM pg_class WHERE relname LIKE '%\\_hnsw' AND relkind = 'i'")
        return list((await connection.execute(names)).scalars())


async def test_two_that_build_at_once_build_it_once(
    own_database_url: str, provider: EmbeddingProvider, counter: TokenCounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "INDEXED_FROM", FEW)
    database = Database(own_database_url, pool_size=4)
    await remember_with_vectors(database, counter, provider)
    exact = await search(database, provider, workspace="w", language="english", query=Query(text="a note", k=5))
    assert sum(await asyncio.gather(*(build_indexes(database) for _ in range(3)))) == 1
    assert await build_indexes(database) == 0
    assert len(await indexes(database)) == 1
    found = await search(database, provider, workspace="w", language="english", query=Query(text="a note", k=5))
    assert [hit.memory.memory_id for hit in found.hits] == [hit.memory.memory_id for hit in exact.hits]
    await database.close()


async def test_what_is_near_is_found_once_there_is_an_index(
    own_database_url: str, provider: EmbeddingProvider, counter: TokenCounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "INDEXED_FROM", FEW)
    database = Database(own_database_url, pool_size=2)
    await remember_with_vectors(database, counter, provider)

    async def waiting() -> list[str]:
        async with database.statements() as connection:
            return list((await connection.execute(text("SELECT step FROM pending_links"))).scalars())

    assert await link_waiting(database) == FEW
    assert await waiting() == ["vectors"] * FEW
    await build_indexes(database)
    await link_waiting(database)
    assert await waiting() == []
    await database.close()


async def test_a_worker_builds_it_when_no_more_come(
    own_database_url: str,
    settings: Settings,
    provider: EmbeddingProvider,
    counter: TokenCounter,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(store, "INDEXED_FROM", FEW)
    monkeypatch.setattr(backfill, "POURING_SECONDS", 0.1)
    async with own_services(own_database_url, settings, provider, counter) as services, working(services):
        await remember_with_vectors(services.database, counter, provider)
        await until_settled(services)
        assert len(await indexes(services.database)) == 1
        async with services.database.statements() as connection:
            assert (await connection.execute(text("SELECT count(*) FROM pending_links"))).scalar_one() == 0


async def test_what_pours_in_is_noticed(
    own_database_url: str, provider: EmbeddingProvider, counter: TokenCounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill, "POURING_BYTES", 1)
    database = Database(own_database_url, pool_size=4)
    await serving_model(database, provider)
    before = await vector_bytes(database)
    assert not pouring(before, await vector_bytes(database))
    for start in itertools.count(0, FEW):
        await remember_with_vectors(database, counter, provider, start)
        if pouring(before, now := await vector_bytes(database)):
            break
    assert not pouring(now, await vector_bytes(database))
    await database.close()
