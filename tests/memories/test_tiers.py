"""Accesses and tiers, with a real Postgres: recalls are counted once, and jobs move memories between tiers."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from app.db.database import Database
from app.errors import InvalidInput, NotFound
from app.memories.browse import get_memory, list_memories
from app.memories.filters import Filters
from app.memories.lifecycle import delete_memories, pin_memory, unpin_memory
from app.memories.memory import Memory, NewMemory, new_id
from app.memories.remember import Door, remember
from app.models.protocols import TokenCounter
from app.models.providers import NoopProvider
from app.operations.maintenance import count_accesses, move_tiers
from app.operations.status import workspace_status
from app.retrieval import log
from app.runs.record import record_run
from app.runs.run import NewRun
from app.workspaces.workspace import Workspace

FADING = 7 * 86_400.0
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
        found = await remember(Door(self.database, self.counter, self.workspace), given)
        assert found.rejected == ()
        return [memory_id for memory_id in found.ids if memory_id]

    async def recall(self, *ids: UUID, purpose: str = "search", days_ago: float = 0, run_id: str | None = None) -> None:
        moment = datetime.now(UTC) - timedelta(days=days_ago)
        asked = {"recall_id": new_id(), "purpose": purpose, "run_id": run_id, "moment": moment, "ids": list(ids)}
        async with self.database.session(self.workspace) as session:
            await session.execute(RECALL, asked)

    async def count(self) -> None:
        await count_accesses(self.database, self.database.across, fading=FADING)

    async def get(self, memory_id: UUID) -> Memory:
        return await get_memory(self.database, workspace=self.workspace, memory_id=memory_id)

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
    for purpose in ("trial", log.IMPORTED):
        await store.recall(tea, purpose=purpose)
    await store.count()
    assert await store.counts(tea) == [0]


async def test_two_that_count_at_once_share_the_recalls(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "COUNTED_AT_ONCE", 3)
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
            taken = await log.take_uncounted(session)
            assert [item.memory_id for item in taken or ()] == [tea]
            raise ConnectionAbortedError
    await store.count()
    assert await store.counts(tea) == [1]


async def test_memories_that_are_gone_are_passed_over_and_deleted_ones_counted(store: Store) -> None:
    tea, bread, gone = await store.add("Tea of the house", "Bread of the house", "Salt of the house")
    await store.recall(gone, tea, bread)
    await delete_memories(store.database, workspace=store.workspace, ids=[bread])
    async with store.database.session(store.workspace) as session:
        await session.execute(DESTROY, {"memory_id": gone})
    await store.count()
    assert await store.counts(tea, bread) == [1, 1]


async def test_a_recall_that_is_taken_from_the_log_before_it_is_counted_counts_nothing(store: Store) -> None:
    (tea,) = await store.add("Tea of the house")
    await store.recall(tea, run_id="r")
    async with store.database.session(store.workspace) as session:
        await log.forget_runs(session, ["r"])
    await store.count()
    assert await store.counts(tea) == [0]


async def move(store: Store) -> None:
    await move_tiers(store.database, store.database.across, fading=FADING)


async def tiers_of(store: Store, *ids: UUID) -> list[str]:
    return [(await store.get(memory_id)).tier for memory_id in ids]


async def age(store: Store, *ids: UUID, days: float) -> None:
    """Makes memories and their accesses older, and lets them be looked at."""
    earlier = """
        WITH aged AS MATERIALIZED (
            SELECT memory_id, {column} - make_interval(days => %(days)s) AS moment FROM {table}
            WHERE workspace_id = %(workspace_id)s AND memory_id = ANY(%(ids)s::uuid[])
        )
        UPDATE {table} t SET {column} = moment{rest} FROM aged
        WHERE t.workspace_id = %(workspace_id)s AND t.memory_id = aged.memory_id
    """
    async with store.database.session(store.workspace) as session:
        for table, column, rest in (("memories", "created_at", ""), ("tiers", "accessed_at", ", due_at = now()")):
            statement = earlier.format(table=table, column=column, rest=rest)
            await session.execute(statement, {"ids": list(ids), "days": int(days)})


async def test_what_is_new_is_short_term_and_what_is_old_or_undated_long_term(store: Store) -> None:
    (new,) = await store.add("Tea of the house")
    (old,) = await store.add("Bread of the house", occurred_at=datetime(2024, 1, 1, tzinfo=UTC))
    (undated,) = await store.add("Salt of the house", kind="chunk")
    assert await tiers_of(store, new, old, undated) == ["short_term", "long_term", "long_term"]
    await move(store)
    assert await tiers_of(store, new, old, undated) == ["short_term", "long_term", "long_term"]


async def test_what_cools_moves_to_long_term_and_recalls_bring_it_back(store: Store) -> None:
    tea, bread = await store.add("Tea of the house", "Bread of the house")
    await age(store, tea, bread, days=40)
    await move(store)
    assert await tiers_of(store, tea, bread) == ["long_term", "long_term"]
    for _ in range(2):
        await store.recall(tea)
    await store.recall(bread)
    await store.count()
    await move(store)
    await move(store)
    assert await tiers_of(store, tea, bread) == ["short_term", "long_term"]
    assert await store.counts(tea, bread) == [2, 1]
    await age(store, tea, days=40)
    await move(store)
    assert await tiers_of(store, tea) == ["long_term"]
    assert await store.counts(tea) == [2]


async def test_what_a_run_writes_is_working_until_the_run_is_recorded(store: Store) -> None:
    place: dict[str, Any] = {"database": store.database, "workspace": store.workspace}
    (noted,) = await store.add("Tea of the house", run_id="r")
    await move(store)
    assert await tiers_of(store, noted) == ["working"]
    await record_run(**place, run=NewRun(run_id="r", task="tea"))
    await move(store)
    assert await tiers_of(store, noted) == ["working"]
    await record_run(**place, run=NewRun(run_id="r", final_score=7))
    await move(store)
    assert await tiers_of(store, noted) == ["short_term"]
    (late,) = await store.add("Bread of the house", run_id="r")
    assert await tiers_of(store, late) == ["short_term"]


async def test_a_person_pins_and_unpins(store: Store) -> None:
    place: dict[str, Any] = {"database": store.database, "workspace": store.workspace}
    tea, bread = await store.add("Tea of the house", "Bread of the house")
    await pin_memory(**place, memory_id=tea, tier="short_term")
    await pin_memory(**place, memory_id=bread, tier="long_term")
    await age(store, tea, days=40)
    await move(store)
    assert await tiers_of(store, tea, bread) == ["short_term", "long_term"]
    for memory_id in (tea, bread, tea):
        await unpin_memory(**place, memory_id=memory_id)
    await move(store)
    assert await tiers_of(store, tea, bread) == ["long_term", "long_term"]
    with pytest.raises(InvalidInput, match="cannot be pinned"):
        await pin_memory(**place, memory_id=tea, tier="working")
    for verb in (partial(pin_memory, tier="long_term"), unpin_memory):
        with pytest.raises(NotFound):
            await verb(**place, memory_id=new_id())


async def test_lists_and_counts_are_by_tier(store: Store) -> None:
    tea, bread = await store.add("Tea of the house", "Bread of the house")
    (noted,) = await store.add("Salt of the house", run_id="r")
    await pin_memory(store.database, workspace=store.workspace, memory_id=bread, tier="long_term")
    listed = {
        tiers: [found.memory_id for found in await list_memories(
            store.database, workspace=store.workspace, filters=Filters(tiers=tiers)
        )]
        for tiers in (("short_term",), ("long_term",), ("working",), ("working", "short_term"))
    }  # fmt: skip
    assert list(listed.values()) == [[tea], [bread], [noted], [noted, tea]]
    with pytest.raises(InvalidInput, match="is not a tier"):
        await list_memories(store.database, workspace=store.workspace, filters=Filters(tiers=("hot",)))
    status = await workspace_status(store.database, NoopProvider(), workspace=store.workspace, model_loaded=True)
    assert status.tiers == {"short_term": 1, "working": 1}
