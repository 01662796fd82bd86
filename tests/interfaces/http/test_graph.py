"""The graph over HTTP: a real server, a real Postgres, and for one map the real process that draws.

The others are drawn in this process, without UMAP, which takes 3 s of a core; tests/insight/test_layout.py judges it.
"""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import msgspec
import numpy as np
import pytest

from app.insight.child import run_child
from app.insight.map import layout, service, store
from app.insight.map.drawing import DrawnMap, Point
from app.storage.index.models import active_model
from app.storage.memories.memory import NewMemory
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from tests.insight.seeding import TOPICS, embed, seed, vectors_of

PATIENCE = 900.0
"""Seconds that a layout process may take to become ready on a busy machine."""


@pytest.fixture(autouse=True)
def _patient(client: httpx.AsyncClient) -> None:
    client.timeout = httpx.Timeout(PATIENCE)


async def draw_here(_module: str, sent: bytes, _what: str, **_: object) -> bytes:
    """Computes a layout as the process would."""
    job = msgspec.msgpack.decode(sent, type=layout.Job)
    return msgspec.msgpack.encode(await asyncio.to_thread(layout.lay_out, job))


@pytest.fixture(autouse=True)
def _drawn_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "run_child", draw_here)
    monkeypatch.setattr(layout, "place", lambda vectors: layout._sunflower(len(vectors)))


async def shown(client: httpx.AsyncClient, **parameters: object) -> dict[str, Any]:
    answer = await client.get("/api/graph", params={name: str(value) for name, value in parameters.items()})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def places(found: dict[str, Any]) -> dict[str, tuple[float, float]]:
    return {node["id"]: (node["x"], node["y"]) for node in found["nodes"]}


async def test_an_unknown_workspace_has_an_empty_graph(client: httpx.AsyncClient, workspace_name: str) -> None:
    found = await shown(client)
    assert (found["nodes"], found["clusters"], found["computed_at"]) == ([], [], None)
    assert workspace_name in found["reason"]


async def test_memories_without_vectors_are_told(
    client: httpx.AsyncClient, services: Services, workspace: Workspace
) -> None:
    await services.write_gate.remember(workspace, [NewMemory(kind="note", body="The crane waits for its vector.")])
    assert (await shown(client))["reason"] == "no memory has its vector yet; 1 wait for theirs"
    await seed(services, workspace, 2)
    found = await shown(client)
    assert len(found["nodes"]) == 2
    assert found["reason"] == "1 memory is waiting for a vector and is not shown"


async def test_only_the_newest_memories_are_looked_through(
    services: Services, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    await seed(services, workspace, 3)
    await services.write_gate.remember(workspace, [NewMemory(kind="note", body="No vector yet.")])
    seen = []
    for most in (1, 3, 9):
        monkeypatch.setattr(store, "LOOKED_THROUGH", most)
        async with services.database.session(workspace) as session:
            model = await active_model(session)
            assert model is not None
            seen.append(len(await store.newest(session, model, kind="", limit=10)))
    assert seen == [0, 2, 3]


async def test_a_memory_without_a_title_is_named_by_its_text(client: httpx.AsyncClient) -> None:
    body = "The crane lifted the beam. " * 10
    for note in ({"kind": "note", "body": body}, {"kind": "note", "title": "Crane", "body": f"{body} Twice."}):
        await client.post("/api/memories?wait=true", json=note)
    titles = {node["title"] for node in (await shown(client))["nodes"]}
    assert titles == {"Crane", body[: store.TITLE_CHARACTERS]}


@pytest.mark.parametrize("count", [1, 2, 3, 4])
async def test_few_memories(client: httpx.AsyncClient, services: Services, workspace: Workspace, count: int) -> None:
    await seed(services, workspace, count)
    found = await shown(client)
    assert len(set(places(found).values())) == count
    assert [cluster["size"] for cluster in found["clusters"]] == [count]


async def test_identical_vectors(client: httpx.AsyncClient, services: Services, workspace: Workspace) -> None:
    await seed(services, workspace, 12, matrix=np.repeat(vectors_of(["violin"]), 12, axis=0))
    found = await shown(client)
    assert len(set(places(found).values())) == 12
    assert len(found["clusters"]) == 1


async def test_a_graph_of_the_real_process(
    client: httpx.AsyncClient, services: Services, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "run_child", run_child)
    ids = await seed(services, workspace, 24)
    found = await shown(client)
    assert set(places(found)) == {str(identity) for identity in ids}
    assert len(found["clusters"]) == 8
    assert sum(cluster["size"] for cluster in found["clusters"]) == 24
    node = next(node for node in found["nodes"] if node["title"] == "violin 23")
    assert (node["kind"], node["tags"], node["quality"]) == ("note", ["violin"], 0)
    assert node["final_score"] is None
    assert node["occurred_at"] is None
    assert node["created_at"]


async def test_clusters_are_labelled_by_their_topics(
    client: httpx.AsyncClient, services: Services, workspace: Workspace
) -> None:
    await seed(services, workspace, 12)
    found = await shown(client)
    topics = {node["cluster"]: node["tags"][0] for node in found["nodes"]}
    assert sorted(topics.values()) == sorted(TOPICS)
    for cluster in found["clusters"]:
        topic = topics[cluster["id"]]
        assert 1 <= len(cluster["terms"]) <= 5
        assert all(word.lower() in f"{topic} {TOPICS[topic]}" for word in cluster["terms"]), cluster
        assert not {"the", "and", "with", "a"} & set(cluster["terms"])


async def test_the_newest_of_a_kind(client: httpx.AsyncClient, services: Services, workspace: Workspace) -> None:
    await seed(services, workspace, 6)
    await seed(services, workspace, 2, first=6, kind="message")
    newest = await seed(services, workspace, 4, first=8, kind="message")
    found = await shown(client, kind="message", limit=4)
    assert set(places(found)) == {str(identity) for identity in newest}
    assert len((await shown(client, kind=""))["nodes"]) == 12
    reason = (await shown(client, kind="cue"))["reason"]
    assert reason == f"there is no memory of the kind cue in workspace {workspace.name}"


async def test_task_type_and_run_are_told(client: httpx.AsyncClient) -> None:
    await client.post("/api/runs", json={"run_id": "r1", "task": "count ships", "task_type": "research"})
    sent = {"kind": "note", "body": "Twelve ships left the harbour.", "run_id": "r1", "final_score": 8.5}
    await client.post("/api/memories?wait=true", json=sent)
    node = (await shown(client))["nodes"][0]
    assert (node["task_type"], node["run_id"], node["final_score"]) == ("research", "r1", 8.5)


async def test_what_is_quarantined_is_not_shown(
    client: httpx.AsyncClient, services: Services, workspace: Workspace
) -> None:
    ids = await seed(services, workspace, 5)
    async with services.database.across() as session:
        await session.execute(
            "UPDATE memories SET valid_until = now(), retired_as = 'quarantined' WHERE memory_id = %(id)s",
            {"id": ids[0]},
        )
    assert str(ids[0]) not in places(await shown(client))


@pytest.mark.parametrize(
    "parameters", [{"limit": "0"}, {"limit": "4001"}, {"limit": "x"}, {"kind": "zebra"}, {"refresh": "perhaps"}]
)
async def test_a_wrong_question_is_named(client: httpx.AsyncClient, parameters: dict[str, str]) -> None:
    answer = await client.get("/api/graph", params=parameters)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == next(iter(parameters))


async def test_unchanged_memories_stay_where_they_are(
    client: httpx.AsyncClient, services: Services, workspace: Workspace
) -> None:
    ids = await seed(services, workspace, 20)
    first = await shown(client)
    await client.post(f"/api/memories/{ids[0]}/feedback", json={"rating": -1})
    again = await shown(client)
    assert (places(again), again["clusters"]) == (places(first), first["clusters"])
    assert again["computed_at"] == first["computed_at"]
    assert next(node for node in again["nodes"] if node["id"] == str(ids[0]))["quality"] == -1


async def test_a_map_tells_its_age_and_what_is_newer(
    client: httpx.AsyncClient, services: Services, workspace: Workspace
) -> None:
    await seed(services, workspace, 40)
    first = await shown(client)
    await seed(services, workspace, 2, first=40)
    aged = await shown(client)
    assert (places(aged), aged["computed_at"]) == (places(first), first["computed_at"])
    assert aged["reason"] == "2 memories are newer than it and are not shown"
    drawn = await shown(client, refresh="true")
    assert (len(drawn["nodes"]), drawn["reason"]) == (42, "")
    assert drawn["computed_at"] > first["computed_at"]
    await seed(services, workspace, 8, first=42)
    assert len((await shown(client))["nodes"]) == 50


async def test_a_restored_memory_is_where_it_was(
    client: httpx.AsyncClient, services: Services, workspace: Workspace
) -> None:
    ids = await seed(services, workspace, 20)
    first = await shown(client)
    await client.patch("/api/memories", json={"state": "deleted", "ids": [str(ids[3])]})
    assert places(await shown(client)) == {name: at for name, at in places(first).items() if name != str(ids[3])}
    await client.patch("/api/memories", json={"state": "live", "ids": [str(ids[3])]})
    await embed(services, workspace, [ids[3]], vectors_of(["violin"]))
    assert places(await shown(client)) == places(first)


async def test_each_user_has_a_map(client: httpx.AsyncClient, services: Services, workspace: Workspace) -> None:
    await seed(services, workspace, 4)
    note = {"kind": "note", "body": "The crane lifted the beam.", "user": "alice"}
    (await client.post("/api/memories?wait=true", json=note)).raise_for_status()
    assert len((await shown(client, user="alice"))["nodes"]) == 1
    everyones, nobodys = await shown(client), await shown(client, user="")
    assert (len(everyones["nodes"]), len(nobodys["nodes"])) == (5, 4)
    assert nobodys["computed_at"] > everyones["computed_at"]
    assert (await shown(client))["computed_at"] == everyones["computed_at"]
    (await client.delete("/api/users/alice")).raise_for_status()
    async with services.database.across() as session:
        assert "alice" not in await session.column("SELECT user_id FROM maps")


async def test_a_map_is_drawn_once_for_all_who_ask(
    client: httpx.AsyncClient, services: Services, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    await seed(services, workspace, 16)
    calls: list[str] = []

    async def counted(module: str, sent: bytes, what: str, *, seconds: float, **environment: str) -> bytes:
        calls.append(what)
        return await draw_here(module, sent, what, seconds=seconds, **environment)

    monkeypatch.setattr(service, "run_child", counted)
    answers = await asyncio.gather(*(shown(client) for _ in range(6)))
    assert calls == ["the map"]
    assert all(answer == answers[0] for answer in answers)
    again = await asyncio.gather(*(shown(client, refresh=True) for _ in range(3)))
    assert calls == ["the map"] * 2
    assert again[0]["computed_at"] > answers[0]["computed_at"]


async def test_a_sketch_comes_before_the_map_and_is_not_stored(
    client: httpx.AsyncClient, services: Services, workspace: Workspace
) -> None:
    ids = await seed(services, workspace, 24)
    rough, again = [await shown(client, sketch=True) for _ in range(2)]
    assert set(places(rough)) == {str(identity) for identity in ids}
    assert again["computed_at"] > rough["computed_at"]
    drawn = await shown(client)
    assert places(drawn) != places(rough)
    assert [cluster["size"] for cluster in rough["clusters"]] == [24]
    assert await shown(client, sketch=True) == drawn


async def test_sketches_wait_for_a_process_and_need_no_umap(
    client: httpx.AsyncClient, services: Services, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    await seed(services, workspace, 16)
    running, most = 0, 0

    async def counted(module: str, sent: bytes, what: str, *, seconds: float, **environment: str) -> bytes:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            return await draw_here(module, sent, what, seconds=seconds, **environment)
        finally:
            running -= 1

    monkeypatch.setattr(service, "run_child", counted)
    monkeypatch.setattr(service, "find_spec", lambda _: None)
    answers = await asyncio.gather(*(shown(client, sketch=True) for _ in range(6)))
    assert [len(answer["nodes"]) for answer in answers] == [16] * 6
    assert most == 2
    assert (await client.get("/api/graph")).status_code == 503


async def test_a_map_of_destroyed_memories_is_not_stored(
    client: httpx.AsyncClient, services: Services, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    await seed(services, workspace, 4)
    note = {"kind": "note", "body": "The crane lifted the beam.", "user": "alice"}
    (await client.post("/api/memories?wait=true", json=note)).raise_for_status()

    async def with_deletion(module: str, sent: bytes, what: str, *, seconds: float, **environment: str) -> bytes:
        (await client.delete("/api/users/alice")).raise_for_status()
        return await draw_here(module, sent, what, seconds=seconds, **environment)

    with monkeypatch.context() as patched:
        patched.setattr(service, "run_child", with_deletion)
        answer = await client.get("/api/graph")
    assert (answer.status_code, "were destroyed while" in answer.json()["detail"]) == (503, True), answer.text
    assert len((await shown(client))["nodes"]) == 4


@pytest.mark.parametrize(
    ("code", "said"),
    [("raise SystemExit(3)", "the process that computes the map ended with 3"), ("input()", "took longer than 2 s")],
)
async def test_a_map_that_cannot_be_drawn_is_a_problem(
    client: httpx.AsyncClient,
    services: Services,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    code: str,
    said: str,
) -> None:
    await seed(services, workspace, 5)
    (tmp_path / "broken.py").write_text("import time\ntime.sleep(9)" if code == "input()" else code)

    async def broken(_module: str, sent: bytes, what: str, **_: object) -> bytes:
        return await run_child("broken", sent, what, seconds=2, PYTHONPATH=str(tmp_path))

    with monkeypatch.context() as patched:
        patched.setattr(service, "run_child", broken)
        answer = await client.get("/api/graph")
    assert (answer.status_code, said in answer.json()["detail"]) == (503, True), answer.text
    assert answer.headers["content-type"].startswith("application/problem+json")
    assert len((await shown(client))["nodes"]) == 5


async def test_the_maps_of_a_workspace_are_few(services: Services, workspace: Workspace) -> None:
    for limit in range(1, store.LAYOUTS + 3):
        async with services.database.session(workspace) as session:
            drawn = DrawnMap(places={uuid4(): Point(0, 0, 0)}, clusters=(), computed_at=datetime.now(UTC))
            await store.save(session, drawn, kind="", limit=limit)
    async with services.database.across() as session:
        statement = "SELECT node_limit FROM maps JOIN workspaces USING (workspace_id) WHERE name = %(name)s ORDER BY 1"
        limits = await session.column(statement, {"name": workspace.name})
    assert limits == [*range(3, store.LAYOUTS + 3)]
