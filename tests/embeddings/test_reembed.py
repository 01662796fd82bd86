"""Moving a store to another model: the old one serves until the new one is whole."""

import asyncio
from collections.abc import Sequence

import pytest
from sqlalchemy import text

from app.db.engine import Database
from app.embeddings.backfill import backfill_state, embed_waiting, find_unlisted
from app.embeddings.following import FollowingProvider
from app.embeddings.provider import EmbeddingProvider, Matrix, TokenCounter, Vector
from app.embeddings.reembed import reembed
from app.errors import EmbeddingUnavailable
from app.memories.memory import NewMemory
from app.memories.remember import remember
from app.retrieval.query import Query
from app.retrieval.recall import Recall
from app.retrieval.search import search


class Turned:
    """The real model under another name, its vectors turned round: none can be compared with the original's."""

    enabled = True

    def __init__(self, provider: EmbeddingProvider, *, fails_after: int | None = None) -> None:
        self._provider, self._left = provider, fails_after
        self.model_id, self.dimension = "turned", provider.dimension

    async def start(self) -> None:
        await self._provider.start()

    async def embed_query(self, text: str) -> Vector:
        return (await self._provider.embed_query(text))[::-1]

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                raise EmbeddingUnavailable("the model went away")
        return (await self._provider.embed_documents(texts))[:, ::-1]

    async def close(self) -> None:
        pass


class Lent(Turned):
    """The real model, which the other tests still need when this one is done with it."""

    def __init__(self, provider: EmbeddingProvider) -> None:
        super().__init__(provider)
        self.model_id = provider.model_id

    async def embed_query(self, text: str) -> Vector:
        return await self._provider.embed_query(text)

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return await self._provider.embed_documents(texts)


LESSONS = [f"Lesson {number}: the scout verifies producers of town {number} in the register." for number in range(300)]


async def filled(database: Database, provider: EmbeddingProvider, counter: TokenCounter) -> None:
    notes = [NewMemory(kind="note", body=body) for body in LESSONS]
    await remember(database, counter, workspace="w", language="english", memories=notes)
    await embed_waiting(database, provider)


async def found(database: Database, provider: EmbeddingProvider) -> Recall:
    query = Query(text="which town's producers were verified, 17", k=3)
    return await search(database, provider, workspace="w", language="english", query=query)


async def models(database: Database) -> list[tuple[str, bool]]:
    async with database.statements() as connection:
        rows = await connection.execute(text("SELECT name, active FROM embedding_models ORDER BY model_id"))
        return [(row.name, row.active) for row in rows]


async def test_the_store_moves_while_queries_are_answered(
    own_database_url: str, provider: EmbeddingProvider, counter: TokenCounter
) -> None:
    database = Database(own_database_url, pool_size=4)
    await filled(database, provider, counter)
    following = FollowingProvider(Lent(provider), lambda _name, _dimension: Turned(provider))
    modes: list[str] = []
    stop = asyncio.Event()

    async def ask() -> None:
        while not stop.is_set():
            await following.follow(database)
            modes.append((await found(database, following)).mode)

    asking = asyncio.create_task(ask())
    seen: list[tuple[int, int]] = []
    done = await reembed(database, Turned(provider), grace_seconds=1.0, on_progress=lambda *counts: seen.append(counts))
    stop.set()
    await asking
    assert done == 300
    assert (seen[0], seen[-1]) == ((0, 300), (300, 300))
    assert await models(database) == [("turned", True)]
    assert set(modes) == {"hybrid"}
    assert following.model_id == "turned"
    assert (await found(database, provider)).mode == "lexical"
    assert await backfill_state(database) == 0
    await database.close()


async def test_what_was_killed_half_way_goes_on(
    own_database_url: str, provider: EmbeddingProvider, counter: TokenCounter
) -> None:
    database = Database(own_database_url, pool_size=4)
    await filled(database, provider, counter)
    with pytest.raises(EmbeddingUnavailable):
        await reembed(database, Turned(provider, fails_after=1), grace_seconds=0)
    assert await models(database) == [(provider.model_id, True), ("turned", False)]
    assert (await found(database, provider)).mode == "hybrid"
    assert await reembed(database, Turned(provider), grace_seconds=0) == 300 - 256
    assert await models(database) == [("turned", True)]
    await database.close()


async def test_what_lacks_a_vector_is_found_by_count(
    own_database_url: str, provider: EmbeddingProvider, counter: TokenCounter
) -> None:
    database = Database(own_database_url, pool_size=4)
    await filled(database, provider, counter)
    assert not await find_unlisted(database)
    async with database.transaction() as connection:
        await connection.execute(
            text("DELETE FROM embeddings WHERE memory_id IN (SELECT memory_id FROM memories LIMIT 7)")
        )
    assert await find_unlisted(database)
    assert await backfill_state(database) == 7
    await database.close()
