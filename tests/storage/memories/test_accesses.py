"""Accesses, with a real Postgres: recalls are counted once."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from app.foundation.db.database import Database
from app.foundation.models.protocols import TokenCounter
from app.operations.maintenance import Maintenance
from app.storage.memories.memory import Memory, NewMemory, new_id
from app.storage.memories.remember import WriteGate
from app.storage.memories.service import Memories
from app.storage.recalls import store as recalls
from app.storage.recalls.store import IMPORTED
from app.storage.tenants.workspace import Workspace

RECALL = """
WITH asked AS (
    INSERT INTO recalls
        (workspace_id, recall_id, purpose, query, parameters, mode, degraded, took_ms, run_id, created_at)
    VALUES (%(workspace_id)s, %(recall_id)s, %(purpose)s, 'tea', '{}', 'hybrid', '[]', 1, %(run_id)s, %(moment)s)
    RETURNING workspace_id, recall_id
)
INSERT INTO recall_hits (workspace_id, recall_id, rank, memory_id, score, explain)
SELECT workspace_id, recall_id, rank, memory_id, 1, '{}'
FROM asked, unnest(%(ids)s::uuid[]) WITH ORDINALITY AS hit(memory_id, rank)
RETURNING rank
"""
DESTROY = "DELETE FROM memories WHERE workspace_id = %(workspace_id)s AND memory_id = %(memory_id)s"


class Store:
    """A workspace with memories, and recalls that are written into its log."""

    def __init__(self, database: Database, counter: TokenCounter, workspace: Workspace) -> None:
        self.database, self.counter, self.workspace = database, counter, workspace

    async def add(self, *bodies: str, **fields: Any) -> Sequence[UUID]:
        given = [NewMemory(**{"kind": "note", "body": body, **fields}) for body in bodies]
        found = await WriteGate(database=self.database, counter=self.counter).remember(self.workspace, given)
        assert found.rejected == ()
        return [memory_id for memory_id in found.ids if memory_id]

    async def recall(self, *ids: UUID, purpose: str = "search", days_ago: float = 0, run_id: str | None = None) -> None:
        moment = datetime.now(UTC) - timedelta(days=days_ago)
        asked = {"recall_id": new_id(), "purpose": purpose, "run_id": run_id, "moment": moment, "ids": list(ids)}
        async with self.database.session(self.workspace) as session:
            await session.execute(RECALL, asked)

    async def count(self) -> None:
        await Maintenance(database=self.database).count_accesses(self.database.across)

    async def get(self, memory_id: UUID) -> Memory:
        return await Memories(database=self.database).get(self.workspace, memory_id=memory_id)

    async def counts(self, *ids: UUID) -> list[int]:
        return [(await self.get(memory_id)).access_count for memory_id in ids]


@pytest.fixture
async def store(database: Database, counter: TokenCounter, workspace: Workspace) -> Store:
    return Store(database, counter, workspace)


async def test_each_recall_counts_once_however_often_it_is_looked_for(store: Store) -> None:
    tea, bread = await store.add("Tea of the house", "Bread of the house")
    assert (await store.get(tea)).accessed_at is None
    await store.recall(tea, bread, days_ago=2)
    await store.recall(tea)
    await store.count()
    await store.count()
    assert await store.counts(tea, bread) == [2, 1]
    last, earlier = (await store.get(tea)).accessed_at, (await store.get(bread)).accessed_at
    assert last is not None
    assert earlier is not None
    assert timedelta(days=1.9) < last - earlier < timedelta(days=2.1)


async def test_a_recall_of_long_ago_that_comes_late_moves_no_time_back(store: Store) -> None:
    (tea,) = await store.add("Tea of the house")
    await store.recall(tea)
    await store.count()
    last = (await store.get(tea)).accessed_at
    await store.recall(tea, days_ago=9)
    await store.count()
    assert (await store.get(tea)).accessed_at == last
    assert await store.counts(tea) == [2]


async def test_trials_and_imports_do_not_count(store: Store) -> None:
    (tea,) = await store.add("Tea of the house")
    for purpose in ("trial", IMPORTED):
        await store.recall(tea, purpose=purpose)
    await store.count()
    assert await store.counts(tea) == [0]


async def test_two_that_count_at_once_share_the_recalls(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recalls, "COUNTED_AT_ONCE", 3)
    ids = await store.add(*(f"Lesson number {number}" for number in range(4)))
    for _ in range(10):
        await store.recall(*ids)
    await asyncio.gather(*(store.count() for _ in range(4)))
    assert await store.counts(*ids) == [10] * 4


async def test_recalls_that_a_killed_worker_took_are_counted_by_the_next(store: Store) -> None:
    (tea,) = await store.add("Tea of the house")
    await store.recall(tea)
    with suppress(ConnectionAbortedError):
        async with store.database.session(store.workspace) as session:
            taken = await recalls.take_uncounted(session)
            assert [item.memory_id for item in taken or ()] == [tea]
            raise ConnectionAbortedError
    await store.count()
    assert await store.counts(tea) == [1]


async def test_memories_that_are_gone_are_passed_over_and_deleted_ones_counted(store: Store) -> None:
    tea, bread, gone = await store.add("Tea of the house", "Bread of the house", "Salt of the house")
    await store.recall(gone, tea, bread)
    await Memories(database=store.database).delete(store.workspace, ids=[bread])
    async with store.database.session(store.workspace) as session:
        await session.execute(DESTROY, {"memory_id": gone})
    await store.count()
    assert await store.counts(tea, bread) == [1, 1]


async def test_a_recall_that_is_taken_from_the_log_before_it_is_counted_counts_nothing(store: Store) -> None:
    (tea,) = await store.add("Tea of the house")
    await store.recall(tea, run_id="r")
    async with store.database.session(store.workspace) as session:
        await recalls.forget_runs(session, ["r"])
    await store.count()
    assert await store.counts(tea) == [0]
