"""What a person deleted, and when it is gone for good."""

from pathlib import Path
from typing import Any

import httpx

from app.foundation.db.database import Database
from app.operations.maintenance import empty_trash
from app.storage.tenants.service import Workspaces
from app.wiring import Services
from tests.interfaces.http.calls import get, listed, patch, post


def part(name: str, fact: str) -> str:
    """A section long enough to be a chunk of its own."""
    return (
        f"\n## {name}\n\n{fact} " + f"The {name.lower()} was measured by the second team in the old hall. " * 12 + "\n"
    )


REPORT = "# Pump\n" + part("Flow", "It pumps 4 litres a second.") + part("Noise", "It hums at 40 decibels all night.")


async def age(database: Database, memory_id: str, days: int) -> None:
    async with database.across() as session:
        statement = "UPDATE memories SET valid_until = now() - make_interval(days => %(days)s) WHERE memory_id = %(id)s"
        await session.execute(statement, {"days": days, "id": memory_id})


async def test_the_trash_keeps_what_is_young_and_destroys_what_is_old(
    client: httpx.AsyncClient, database: Database
) -> None:
    notes = [{"kind": "note", "body": f"Lesson number {number} of the pump."} for number in range(2)]
    young, old = [(await post(client, "/api/memories", note))["ids"][0] for note in notes]
    await post(client, f"/api/memories/{old}/feedback", {"rating": -1})
    await patch(client, "/api/memories", {"state": "deleted", "ids": [young, old]})
    await age(database, old, 40)
    assert await empty_trash(database.across, days=30) >= 1
    assert (await client.get(f"/api/memories/{old}")).status_code == 404
    assert (await patch(client, "/api/memories", {"state": "live", "ids": [young, old]}))["changed"] == [young]


async def test_a_deleted_chunk_stays_out_of_its_file_for_ever(client: httpx.AsyncClient, database: Database) -> None:
    await post(client, "/api/reports", {"path": "pump.md", "content": REPORT})
    chunks = (await get(client, "/api/memories"))["memories"]
    noise = next(chunk["id"] for chunk in chunks if "hums" in chunk["body"])
    await patch(client, "/api/memories", {"state": "deleted", "ids": [noise]})
    await age(database, noise, 40)
    await empty_trash(database.across, days=30)
    left = await get(client, f"/api/memories/{noise}")
    assert (left["body"], left["title"]) == ("", "")
    assert await listed(client, "deleted") == []
    assert (await patch(client, "/api/memories", {"state": "live", "ids": [noise]}))["changed"] == []
    await post(client, "/api/reports", {"path": "pump.md", "content": REPORT + part("Price", "It costs 90 euros.")})
    bodies = [chunk["body"] for chunk in (await get(client, "/api/memories"))["memories"]]
    assert any("90 euros" in body for body in bodies)
    assert not any("hums" in body for body in bodies)


async def test_what_a_file_no_longer_has_goes_after_the_days_of_the_trash_with_its_links(
    client: httpx.AsyncClient, database: Database
) -> None:
    for version in range(6):
        said = f"Version {version} of the pump runs at {300 + version} bar in the north plant, and its seal is checked."
        await post(client, "/api/reports", {"path": "pump.md", "content": part("State", said)})
    workspace = await Workspaces(database=database).resolve(client.headers["X-Workspace"])

    async def counted() -> tuple[int, int]:
        async with database.session(workspace, transaction=False) as session:
            links = "SELECT count(*) FROM links WHERE workspace_id = %(workspace_id)s AND relation = 'supersedes'"
            memories = "SELECT count(*) FROM memories WHERE workspace_id = %(workspace_id)s"
            return await session.value(memories), await session.value(links)

    assert await counted() == (6, 5)
    await empty_trash(database.across, days=30)
    assert await counted() == (6, 5)
    async with database.session(workspace) as session:
        aged = (
            "UPDATE memories SET valid_until = valid_until - interval '31 days' WHERE workspace_id = %(workspace_id)s"
        )
        await session.execute(aged)
    await empty_trash(database.across, days=30)
    assert await counted() == (1, 0)
    await post(client, "/api/reports", {"path": "pump.md", "content": part("State", "The seal of the pump is new.")})
    assert len((await get(client, "/api/memories"))["memories"]) == 1


async def test_a_replaced_turn_goes_and_one_that_its_log_lost_stays(
    client: httpx.AsyncClient, database: Database
) -> None:
    def given(*said: str) -> dict[str, Any]:
        messages = [{"role": "user", "text": text, "id": f"m{place}"} for place, text in enumerate(said) if text]
        return {"id": "s1", "messages": messages}

    await post(client, "/api/sessions", given("use tabs", "close the valve"))
    await post(client, "/api/sessions", given("indent with four blanks", ""))
    workspace = await Workspaces(database=database).resolve(client.headers["X-Workspace"])
    async with database.session(workspace) as session:
        aged = (
            "UPDATE memories SET valid_until = valid_until - interval '31 days' WHERE workspace_id = %(workspace_id)s"
        )
        await session.execute(aged)
    await empty_trash(database.across, days=30)
    async with database.session(workspace, transaction=False) as session:
        texts = await session.column("SELECT body FROM memories WHERE workspace_id = %(workspace_id)s ORDER BY ordinal")
    assert texts == ["indent with four blanks", "close the valve"]


async def test_a_deleted_turn_does_not_come_with_its_log_after_the_trash_is_emptied(
    client: httpx.AsyncClient, database: Database
) -> None:
    turns = [{"role": "user", "text": f"step {number}", "tools": [{"name": "Bash"}]} for number in range(3)]
    await post(client, "/api/sessions", {"id": "s1", "messages": turns})
    second = (await get(client, "/api/sessions/s1"))["messages"][1]["id"]
    await patch(client, "/api/memories", {"state": "deleted", "ids": [second]})
    await age(database, second, 40)
    await empty_trash(database.across, days=30)
    await post(client, "/api/sessions", {"id": "s1", "messages": [*turns, {"role": "user", "text": "done"}]})
    shown = (await get(client, "/api/sessions/s1"))["messages"]
    assert [message["text"] for message in shown] == ["step 0", "step 2", "done"]


async def test_a_deleted_session_that_is_sent_again_has_its_texts_after_the_trash_is_emptied(
    client: httpx.AsyncClient, database: Database
) -> None:
    turns = [{"role": "user", "text": f"step {number}", "at": f"2026-07-01T10:0{number}:00Z"} for number in range(3)]
    await post(client, "/api/sessions", {"id": "s1", "messages": turns})
    stored = [message["id"] for message in (await get(client, "/api/sessions/s1"))["messages"]]
    assert (await client.delete("/api/sessions/s1")).status_code == 204
    for memory_id in stored:
        await age(database, memory_id, 40)
    await empty_trash(database.across, days=30)
    for more in ([], [{"role": "user", "text": "done", "at": "2026-07-01T10:05:00Z"}]):
        await post(client, "/api/sessions", {"id": "s1", "messages": [*turns, *more]})
        shown = (await get(client, "/api/sessions/s1"))["messages"]
        assert [message["text"] for message in shown] == [
            *(turn["text"] for turn in turns),
            *(["done"] if more else []),
        ]


AGE_ALL = """
UPDATE {table} SET {column} = {column} - interval '40 days' WHERE workspace_id = %(workspace_id)s
"""


async def age_all(database: Database, client: httpx.AsyncClient) -> None:
    """Moves everything that is gone 40 days into the past."""
    workspace = await Workspaces(database=database).resolve(client.headers["X-Workspace"])
    async with database.session(workspace) as session:
        for table, columns in {"memories": ("valid_until", "created_at"), "sources": ("retired_at",)}.items():
            for column in columns:
                await session.execute(AGE_ALL.format(table=table, column=column))


async def count_chunks(database: Database, client: httpx.AsyncClient) -> int:
    workspace = await Workspaces(database=database).resolve(client.headers["X-Workspace"])
    async with database.session(workspace, transaction=False) as session:
        statement = "SELECT count(*) FROM memories WHERE workspace_id = %(workspace_id)s"
        return int(await session.value(statement))


async def test_a_file_that_is_absent_for_weeks_comes_back_with_its_chunks_and_ratings(
    client: httpx.AsyncClient, services: Services, database: Database, tmp_path: Path
) -> None:
    workspace = await Workspaces(database=database).resolve(client.headers["X-Workspace"])
    pump, other = tmp_path / "pump.md", tmp_path / "other.md"
    other.write_text(part("Tanks", "The tank of the east plant holds 900 litres and was emptied in March."))
    first, second = REPORT, REPORT.replace("hums", "roars")
    assert first != second
    # The file has its first text again when it becomes absent: an old link says that the second one replaced it.
    for text in (first, second, first):
        pump.write_text(text)
        await services.ingestions.ingest(workspace, [tmp_path])
    chunks = (await get(client, "/api/memories?kind=chunk"))["memories"]
    for chunk in chunks:
        await post(client, f"/api/memories/{chunk['id']}/feedback", {"rating": 1})
    pump.unlink()
    await services.ingestions.ingest(workspace, [tmp_path])
    assert len((await get(client, "/api/memories?kind=chunk"))["memories"]) < len(chunks)
    await age_all(database, client)
    await empty_trash(database.across, days=30)
    pump.write_text(first)
    await services.ingestions.ingest(workspace, [tmp_path])
    back = (await get(client, "/api/memories?kind=chunk"))["memories"]
    shown = {chunk["id"]: (chunk["body"], chunk["quality"]) for chunk in back}
    assert shown == {chunk["id"]: (chunk["body"], 1) for chunk in chunks}


async def test_a_file_saved_many_times_keeps_few_chunks_also_when_it_is_absent(
    client: httpx.AsyncClient, services: Services, database: Database, tmp_path: Path
) -> None:
    workspace = await Workspaces(database=database).resolve(client.headers["X-Workspace"])
    pump, other = tmp_path / "pump.md", tmp_path / "other.md"
    other.write_text(part("Tanks", "The tank of the east plant holds 900 litres and was emptied in March."))
    for version in range(30):
        said = f"Version {version} of the pump runs at {300 + version} bar in the north plant, and its seal is checked."
        pump.write_text(part("State", said))
        await services.ingestions.ingest(workspace, [tmp_path])
    assert await count_chunks(database, client) == 31
    pump.unlink()
    await services.ingestions.ingest(workspace, [tmp_path])
    await age_all(database, client)
    await empty_trash(database.across, days=30)
    assert await count_chunks(database, client) == 2
