"""What is asked for while another makes it."""

import asyncio
from uuid import UUID

import pytest

from app.db.engine import Database
from app.memories.memory import NewMemory
from app.memories.remember import remember
from app.observations import store
from app.observations.observation import Outcome
from app.observations.record import get_observation, request_observation
from app.wiring import Services
from app.workspaces import store as workspaces

OUTCOME = Outcome(task="t", output="The scout verified 12 producers. Three lost their licence in 2025.", run_id="r")


async def asked_for(database: Database, workspace: str, outcome: Outcome = OUTCOME) -> UUID:
    return await request_observation(database, workspace=workspace, language="english", outcome=outcome)


async def number_of(database: Database, workspace: str) -> int:
    async with database.statements() as connection:
        target = await workspaces.find(connection, workspace)
        assert target is not None
        return target.workspace_id


@pytest.mark.parametrize("run_id", ["r", None])
async def test_what_is_asked_for_in_the_moment_it_is_made_stays_made(
    services: Services, database: Database, workspace: str, run_id: str | None
) -> None:
    """The second asks while the first holds the observation and stores its memory."""
    observation_id = await asked_for(database, workspace, Outcome(task="t", output=OUTCOME.output, run_id=run_id))
    workspace_id = await number_of(database, workspace)

    async def again() -> UUID:
        if run_id is not None:
            return await asked_for(database, workspace)
        async with database.transaction() as connection:
            found = await store.find(connection, workspace_id, observation_id, lock=True)
        assert found is not None
        assert (found.outcome, found.deleted) == ("stored", False)
        return observation_id

    async with database.transaction() as connection:
        await store.find(connection, workspace_id, observation_id, lock=True)
        waiting = asyncio.create_task(again())
        await asyncio.sleep(0.2)
        assert not waiting.done()
        note = [NewMemory(kind="note", body="12 producers")]
        kept = await remember(database, services.counter, workspace=workspace, language="english", memories=note)
        await store.finish(connection, workspace_id, observation_id, outcome="stored", memory_id=kept.ids[0])
    assert await waiting == observation_id
    told = await get_observation(database, workspace=workspace, observation_id=observation_id)
    assert (told.outcome, told.memory_id) == ("stored", kept.ids[0])
