"""Quotas: what a workspace may have is held on every way in, by writers at once too, and deletion makes room."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import httpx
import pytest
import pytest_asyncio
from msgspec import structs

from app.errors import InvalidInput, QuotaReached
from app.foundation.db.database import Database
from app.foundation.models.chat import Chat
from app.intake.reports.ingest import ingest, ingest_content
from app.intake.runs.observations.observation import Outcome
from app.intake.sessions.take_in import append
from app.intake.sessions.transcript import Turn
from app.operations.status import gauges, store_statistics
from app.recall.cues.cue import NewCue
from app.recall.cues.extraction.extracting import extract_session
from app.recall.cues.keep import add_cues
from app.storage.memories.memory import NewMemory
from app.storage.memories.remember import Door, remember
from app.storage.memories.service import delete_memories, restore_memories
from app.storage.tenants.service import check_room, quota_of, set_quota
from app.storage.tenants.store import Use, use_of_quota
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from tests.conftest import serving, workspace_in

FERRY = "The ferry to the island leaves from pier {} at nine in the morning."


def note(number: int) -> NewMemory:
    return NewMemory(kind="note", body=FERRY.format(number))


@pytest_asyncio.fixture
async def door(services: Services, workspace: Workspace) -> Door:
    return Door(services.database, services.counter, workspace)


async def limited(door: Door, *, memories: int) -> Use | None:
    return await set_quota(door.database, workspace=door.workspace, memories=memories)


async def live(services: Services, workspace: Workspace) -> int:
    found = [item for item in await store_statistics(services.database) if item.name == workspace.name]
    return found[0].live if found else 0


@pytest.mark.parametrize("counted", ["now() - interval '1 hour'", "now() + interval '1 hour'"])
async def test_a_full_workspace_refuses_and_deletion_makes_room(door: Door, services: Services, counted: str) -> None:
    """Even if the clock of the database was ahead when the memories were counted."""
    stored = await remember(door, [note(number) for number in range(3)])
    assert await limited(door, memories=4) == Use(3, 4)
    await remember(door, [note(0), note(3)])
    with pytest.raises(QuotaReached, match="4 of at most 4 memories"):
        await remember(door, [note(4)])
    deleted = [memory_id for memory_id in stored.ids if memory_id is not None][:2]
    await delete_memories(door.database, workspace=door.workspace, ids=deleted)
    async with door.database.session(door.workspace) as session:
        await session.execute(f"UPDATE quotas SET counted_at = {counted}")
    await remember(door, [note(4)])
    # What was deleted does not come back beyond the quota, and nothing of a batch that does not fit is stored.
    with pytest.raises(QuotaReached):
        await restore_memories(door.database, workspace=door.workspace, ids=deleted, release=True)
    with pytest.raises(QuotaReached):
        await remember(door, [note(5), note(6)])
    assert await live(services, door.workspace) == 3


async def test_a_batch_that_does_not_fit_is_not_counted_each_time(door: Door) -> None:
    await remember(door, [note(number) for number in range(3)])
    await limited(door, memories=4)
    async with door.database.session(door.workspace) as session:
        await session.execute("UPDATE quotas SET counted_at = now() - interval '1 hour'")
    with pytest.raises(QuotaReached):
        await remember(door, [note(5), note(6)])
    async with door.database.session(door.workspace) as session:
        assert await session.value("SELECT counted_at > now() - interval '1 minute' FROM quotas")


async def test_writers_at_once_do_not_pass_the_quota(door: Door, services: Services) -> None:
    await limited(door, memories=20)
    calls = [remember(door, [note(5 * call + number) for number in range(5)]) for call in range(8)]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    refused = [outcome for outcome in outcomes if isinstance(outcome, QuotaReached)]
    assert (len(refused), await live(services, door.workspace)) == (4, 20)


async def test_the_memories_of_all_users_count(door: Door) -> None:
    await remember(door, [structs.replace(note(number), user=f"user {number}") for number in range(3)])
    assert await limited(door, memories=3) == Use(3, 3)
    with pytest.raises(QuotaReached):
        await remember(door, [structs.replace(note(9), user="user 1")])


async def test_a_session_of_one_user_counts_the_memories_of_all_users(door: Door) -> None:
    await remember(door, [structs.replace(note(number), user=f"user {number}") for number in range(3)])
    await limited(door, memories=3)
    async with door.database.session(door.workspace) as session:
        await session.execute("UPDATE quotas SET counted_at = NULL")
    own = door.workspace.of("user 1")
    for reading in (True, False):
        async with door.database.session(own, reading=reading) as session:
            assert await use_of_quota(session) == Use(3, 3)
            assert await session.value("SELECT count(*) FROM memories") == 1


async def test_every_way_in_is_refused(door: Door, services: Services) -> None:
    await limited(door, memories=1)
    await remember(door, [note(1)])
    workspace = door.workspace
    cue = NewCue(kind="decision", trigger="booking the ferry", lesson="Book the ferry at pier four.")
    outcome = Outcome(task="find the ferry", output=FERRY.format(5) * 3)
    for way in (
        add_cues(door, [cue]),
        append(door, "talk", [Turn(ordinal=0, role="user", text=FERRY.format(6))], format="messages"),
        ingest_content(services.intake(workspace), "ferry.md", f"# Ferry\n\n{FERRY.format(7)}".encode()),
        services.observations.request(workspace, outcome),
    ):
        with pytest.raises(QuotaReached):
            await way


async def test_no_language_model_is_asked_for_cues_without_room(door: Door) -> None:
    await append(door, "talk", [Turn(ordinal=0, role="user", text=FERRY.format(6))], format="messages")
    await limited(door, memories=1)
    with pytest.raises(QuotaReached):
        await extract_session(door, "talk", cast("Chat", object()))


async def test_files_without_room_are_named_and_taken_by_the_next_ingestion(
    door: Door, services: Services, tmp_path: Path
) -> None:
    for number in range(6):
        (tmp_path / f"{number}.md").write_text(f"# Ferry {number}\n\n{FERRY.format(number)}\n")
    await limited(door, memories=4)
    intake = services.intake(door.workspace)
    first = await ingest(intake, [tmp_path])
    assert (first.counts["new"], first.counts["failed"], first.no_room) == (4, 2, True)
    assert all("of at most 4 memories" in outcome.reason for outcome in first.failed)
    await limited(door, memories=0)
    second = await ingest(intake, [tmp_path])
    assert (second.counts["new"], second.counts["unchanged"], second.no_room) == (2, 4, False)


async def test_the_settings_quota_counts_until_a_workspace_has_its_own(own_services: Services) -> None:
    workspace = await workspace_in(own_services.database, "papers")
    await remember(Door(own_services.database, own_services.counter, workspace), [note(1), note(2)])
    database = Database(own_services.database.url, pool_size=2, quota=2)
    door = Door(database, own_services.counter, workspace)
    assert await quota_of(database, workspace) == Use(2, 2)
    with pytest.raises(QuotaReached):
        await check_room(database, workspace)
    with pytest.raises(QuotaReached):
        await remember(door, [note(3)])
    assert (await gauges(database)).nearly_full == 1
    await limited(door, memories=0)
    await remember(door, [note(3)])
    with pytest.raises(InvalidInput, match="memories"):
        await limited(door, memories=-1)
    await database.close()


@pytest_asyncio.fixture
async def guarded(own_services: Services) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(own_services) as where, httpx.AsyncClient(base_url=where, timeout=60) as client:
        yield client


async def test_a_full_workspace_is_told_over_http(guarded: httpx.AsyncClient) -> None:
    answer = await guarded.put("/api/quota", json={"memories": 1})
    assert answer.json() == {"quota": {"used": 0, "most": 1}}
    given = {"kind": "note", "body": FERRY.format(1)}
    assert (await guarded.post("/api/memories", json=given)).status_code == 200
    for path, body in (("/api/memories", "one"), ("/api/memories:bulk", "many")):
        other = {"kind": "note", "body": FERRY.format(body)}
        refused = await guarded.post(path, json=other)
        assert (refused.status_code, refused.json()["reason"]) == (403, "quota")
        assert refused.json()["findings"] == [{"used": 1, "limit": 1}]
    status = (await guarded.get("/api/status")).json()
    assert status["quota"] == {"used": 1, "most": 1}
    assert "priors_quotas_nearly_used" in (await guarded.get("/metrics")).text
