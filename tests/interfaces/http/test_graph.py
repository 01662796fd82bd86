"""The graph over HTTP: a real server, a real Postgres, a real layout process."""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest

from app.insight.map import store
from app.insight.map.drawing import Graph
from app.insight.map.process import Job, Layout
from app.insight.map.project import MapQuestion, graph
from app.storage.index.models import active_model
from app.storage.memories.memory import NewMemory
from app.storage.memories.remember import Door, remember
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from tests.insight.seeding import TOPICS, seed, vectors_of

PATIENCE = 900.0
"""Seconds that a layout process may take to become ready on a busy machine."""


@pytest.fixture(autouse=True)
def _patient(client: httpx.AsyncClient) -> None:
    client.timeout = httpx.Timeout(PATIENCE)


async def shown(client: httpx.AsyncClient, **parameters: object) -> dict[str, Any]:
    answer = await client.get("/api/graph", params={name: str(value) for name, value in parameters.items()})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def places(found: dict[str, Any]) -> dict[str, tuple[float, float]]:
    return {node["id"]: (node["x"], node["y"]) for node in found["nodes"]}


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - a process has no event
            await asyncio.sleep(0.01)


def numbers(found: dict[str, Any]) -> dict[str, int]:
    return {node["id"]: node["cluster"] for node in found["nodes"]}


async def test_an_unknown_workspace_has_an_empty_graph(client: httpx.AsyncClient, workspace_name: str) -> None:
    found = await shown(client)
    assert (found["nodes"], found["clusters"], found["computed_at"]) == ([], [], None)
    assert workspace_name in found["reason"]


async def test_memories_without_vectors_are_told(
    client: httpx.AsyncClient, services: Services, workspace: Workspace
) -> None:
    await remember(
        Door(services.database, services.counter, workspace),
        [NewMemory(kind="note", body="The crane waits for its vector.")],
    )
    assert (await shown(client))["reason"] == "no memory has its vector yet; 1 wait for theirs"
    await seed(services, workspace, 2)
    found = await shown(client)
    assert len(found["nodes"]) == 2
    assert found["reason"] == "1 memory waits for its vector and is not shown"


async def test_only_the_newest_memories_are_looked_through(
    services: Services, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    await seed(services, workspace, 3)
    await remember(
        Door(services.database, services.counter, workspace), [NewMemory(kind="note", body="No vector yet.")]
    )
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
    assert found["mode"] == "computed"
    assert [cluster["size"] for cluster in found["clusters"]] == [count]
    assert (await shown(client))["mode"] == "stored"


async def test_identical_vectors(client: httpx.AsyncClient, services: Services, workspace: Workspace) -> None:
    await seed(services, workspace, 12, matrix=np.repeat(vectors_of(["violin"]), 12, axis=0))
    found = await shown(client)
    assert len(set(places(found).values())) == 12
    assert len(found["clusters"]) == 1


async def test_a_graph(client: httpx.AsyncClient, services: Services, workspace: Workspace) -> None:
    ids = await seed(services, workspace, 24)
    found = await shown(client)
    assert found["mode"] == "computed"
    assert set(places(found)) == {str(identity) for identity in ids}
    assert len(found["clusters"]) == 8
    assert sum(cluster["size"] for cluster in found["clusters"]) == 24
    node = next(node for node in found["nodes"] if node["title"] == "violin 23")
    assert (node["kind"], node["tags"], node["quality"], node["fitted"]) == ("note", ["violin"], 0, True)
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


async def test_labels_stand_on_memories_of_their_topic(
    client: httpx.AsyncClient, services: Services, workspace: Workspace
) -> None:
    await seed(services, workspace, 60)
    found = await shown(client)
    tags = {(node["x"], node["y"]): node["tags"][0] for node in found["nodes"]}
    labels = [label for cluster in found["clusters"] for label in cluster["labels"]]
    assert {tags[label["x"], label["y"]] for label in labels} == set(TOPICS)
    for label in labels:
        topic = tags[label["x"], label["y"]]
        assert label["terms"][0].lower() in f"{topic} {TOPICS[topic]}", label
    assert (await shown(client))["clusters"] == found["clusters"]


async def test_unchanged_memories_stay_where_they_are(
    client: httpx.AsyncClient, services: Services, workspace: Workspace
) -> None:
    ids = await seed(services, workspace, 20)
    first = await shown(client)
    await client.post(f"/api/memories/{ids[0]}/feedback", json={"rating": -1})
    again = await shown(client)
    assert again["mode"] == "stored"
    assert places(again) == places(first)
    assert again["clusters"] == first["clusters"]
    assert (again["fingerprint"], again["computed_at"]) == (first["fingerprint"], first["computed_at"])
    assert next(node for node in again["nodes"] if node["id"] == str(ids[0]))["quality"] == -1
    assert (await shown(client, limit=5000))["mode"] == "stored"


async def test_a_grown_store_is_projected(client: httpx.AsyncClient, services: Services, workspace: Workspace) -> None:
    await seed(services, workspace, 24)
    first = await shown(client)
    added = await seed(services, workspace, 8, first=24)
    grown = await shown(client)
    assert (grown["mode"], grown["projected"], grown["computed_at"]) == ("projected", 8, first["computed_at"])
    assert grown["fingerprint"] != first["fingerprint"]
    assert {identity: places(grown)[identity] for identity in places(first)} == places(first)
    assert [node["fitted"] for node in grown["nodes"]] == [False] * 8 + [True] * 24
    assert (await shown(client))["mode"] == "stored"
    # What was projected keeps its place when still more comes, and so does what was deleted and is restored.
    await seed(services, workspace, 4, first=32)
    await client.post("/api/memories:delete", json={"ids": [node["id"] for node in first["nodes"][:3]]})
    again = await shown(client)
    assert (again["mode"], again["projected"], len(again["nodes"])) == ("projected", 12, 33)
    assert all(places(again)[str(identity)] == places(grown)[str(identity)] for identity in added)


async def test_a_restored_memory_finds_its_place(
    client: httpx.AsyncClient, services: Services, workspace: Workspace
) -> None:
    ids = await seed(services, workspace, 20)
    first = await shown(client)
    await client.post("/api/memories:delete", json={"ids": [str(ids[3])]})
    less = await shown(client)
    assert (less["mode"], less["projected"], len(less["nodes"])) == ("projected", 0, 19)
    await client.post("/api/memories:restore", json={"ids": [str(ids[3])]})
    # The vector of these words is not the made-up one: only the place is compared.
    await client.post("/api/memories?wait=true", json={"kind": "note", "body": "A tide table for the harbour."})
    await seed(services, workspace, 0)
    again = await shown(client)
    assert {i: p for i, p in places(again).items() if i in places(less)} == places(less)
    assert places(again).get(str(ids[3]), places(first)[str(ids[3])]) == places(first)[str(ids[3])]


async def test_refresh_computes_again(client: httpx.AsyncClient, services: Services, workspace: Workspace) -> None:
    await seed(services, workspace, 24)
    first = await shown(client)
    await seed(services, workspace, 8, first=24)
    grown = await shown(client)
    refreshed = await shown(client, refresh="true")
    assert (refreshed["mode"], refreshed["projected"]) == ("computed", 0)
    assert refreshed["fingerprint"] == grown["fingerprint"]
    assert places(refreshed) != places(grown)
    assert numbers(refreshed) == numbers(grown)
    assert refreshed["computed_at"] > first["computed_at"]
    assert places(await shown(client)) == places(refreshed) == places(await shown(client, refresh="true"))


async def test_the_newest_of_a_kind(client: httpx.AsyncClient, services: Services, workspace: Workspace) -> None:
    await seed(services, workspace, 6)
    await seed(services, workspace, 2, first=6, kind="message")
    newest = await seed(services, workspace, 4, first=8, kind="message")
    found = await shown(client, kind="message", limit=4)
    assert set(places(found)) == {str(identity) for identity in newest}
    assert len((await shown(client, kind=""))["nodes"]) == 12
    reason = (await shown(client, kind="cue"))["reason"]
    assert reason == f"there is no memory of the kind cue in workspace {workspace.name}"


async def test_task_type_and_run_are_told(client: httpx.AsyncClient, services: Services) -> None:
    await client.post("/api/runs", json={"run_id": "r1", "task": "count ships", "task_type": "research"})
    sent = {"kind": "note", "body": "Twelve ships left the harbour.", "run_id": "r1", "final_score": 8.5}
    await client.post("/api/memories?wait=true", json=sent)
    node = (await shown(client))["nodes"][0]
    assert (node["task_type"], node["run_id"], node["final_score"]) == ("research", "r1", 8.5)
    assert services.layouts.pid


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
    "parameters", [{"limit": "0"}, {"limit": "5001"}, {"limit": "x"}, {"kind": "zebra"}, {"refresh": "perhaps"}]
)
async def test_a_wrong_question_is_named(client: httpx.AsyncClient, parameters: dict[str, str]) -> None:
    answer = await client.get("/api/graph", params=parameters)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == next(iter(parameters))


class Watched:
    """The computations of layouts, seen by a test."""

    def __init__(self, services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.count = 0
        self._compute = services.layouts.compute
        monkeypatch.setattr(type(services.layouts), "compute", lambda _, job: self._watched(job))

    async def _watched(self, job: Job) -> Layout:
        self.count += 1
        self.begun.set()
        layout = await self._compute(job)
        await self.may_answer.wait()
        return layout


@pytest.fixture
def computing(services: Services, monkeypatch: pytest.MonkeyPatch) -> Watched:
    """Says when a layout is being computed."""
    return Watched(services, monkeypatch)


async def test_one_computation_for_all_who_ask(
    client: httpx.AsyncClient, services: Services, workspace: Workspace, computing: Watched
) -> None:
    await seed(services, workspace, 16)
    answers = await asyncio.gather(*(shown(client) for _ in range(6)))
    assert computing.count == 1
    assert all(places(answer) == places(answers[0]) for answer in answers)


async def test_who_leaves_does_not_take_the_computation_along(
    services: Services, workspace: Workspace, computing: Watched
) -> None:
    await seed(services, workspace, 16)

    async def ask() -> Graph:
        return await graph(services.database, services.provider, services.layouts, MapQuestion(workspace=workspace))

    leaving, staying = asyncio.create_task(ask()), asyncio.create_task(ask())
    await asyncio.wait_for(computing.begun.wait(), PATIENCE)
    leaving.cancel()
    assert len((await staying).nodes) == 16


async def test_other_requests_go_on_while_it_computes(
    client: httpx.AsyncClient, services: Services, workspace: Workspace, computing: Watched
) -> None:
    await seed(services, workspace, 900)
    await client.post("/api/search", json={"query": "grain in the harbour"})
    computing.may_answer.clear()
    asking = asyncio.create_task(shown(client, limit=900))
    await asyncio.wait_for(computing.begun.wait(), PATIENCE)
    times: list[float] = []
    while not asking.done():
        started = time.perf_counter()
        assert (await client.post("/api/search", json={"query": "grain in the harbour"})).status_code == 200
        times.append(time.perf_counter() - started)
        if len(times) > 3:
            computing.may_answer.set()
    assert len((await asking)["nodes"]) == 900
    assert sorted(times)[len(times) // 2] < 1


async def test_a_killed_process_is_a_problem_and_the_next_request_works(
    client: httpx.AsyncClient, services: Services, workspace: Workspace, computing: Watched
) -> None:
    await seed(services, workspace, 600)
    await shown(client, limit=3)
    before = services.layouts.pid
    assert before is not None
    computing.begun.clear()
    asking = asyncio.create_task(client.get("/api/graph"))
    await asyncio.wait_for(computing.begun.wait(), PATIENCE)
    os.kill(before, signal.SIGKILL)
    answer = await asking
    assert answer.status_code == 503
    assert answer.headers["content-type"].startswith("application/problem+json")
    assert answer.headers["retry-after"]
    assert "asking again starts another" in answer.json()["detail"]
    assert len((await shown(client, limit=16))["nodes"]) == 16
    assert services.layouts.pid not in {None, before}


async def test_a_process_that_died_while_idle_is_not_noticed(
    client: httpx.AsyncClient, services: Services, workspace: Workspace
) -> None:
    await seed(services, workspace, 3)
    await shown(client)
    before = services.layouts.pid
    assert before is not None
    os.kill(before, signal.SIGKILL)
    await until(lambda: services.layouts.pid is None)
    assert (await shown(client, refresh="true"))["mode"] == "computed"


async def test_the_layouts_of_a_workspace_are_few(
    client: httpx.AsyncClient, services: Services, workspace: Workspace
) -> None:
    await seed(services, workspace, store.LAYOUTS + 4)
    for limit in range(1, store.LAYOUTS + 3):
        await shown(client, limit=limit)
    async with services.database.across() as session:
        statement = (
            "SELECT node_limit, count(*) FROM graph_layouts JOIN graph_points USING (workspace_id, kind, node_limit)"
            " JOIN workspaces USING (workspace_id) WHERE name = %(name)s GROUP BY 1 ORDER BY 1"
        )
        rows = await session.rows(statement, {"name": workspace.name})
    assert [tuple(row) for row in rows] == [(limit, limit) for limit in range(3, store.LAYOUTS + 3)]


async def test_another_text_of_a_memory_is_another_place(
    client: httpx.AsyncClient, services: Services, workspace: Workspace
) -> None:
    ids = await seed(services, workspace, 20)
    first = await shown(client)
    async with services.database.across() as session:
        await session.execute(
            "UPDATE memories SET title = 'other', content_hash = '\\x01' WHERE memory_id = %(id)s", {"id": ids[0]}
        )
    found = await shown(client)
    assert (found["mode"], found["projected"]) == ("projected", 1)
    assert places(found)[str(ids[0])] != places(first)[str(ids[0])]


async def test_the_status_tells_what_a_map_waits_for(
    client: httpx.AsyncClient, services: Services, workspace: Workspace
) -> None:
    await seed(services, workspace, 5)
    await shown(client, limit=4)
    assert (await client.get("/api/status")).json()["maps"] == ""
    pid = services.layouts.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    asking = asyncio.create_task(shown(client))
    while not (stage := (await client.get("/api/status")).json()["maps"]):
        pass
    os.kill(pid, signal.SIGCONT)
    assert len((await asking)["nodes"]) == 5
    assert stage in {"compiling", "computing"}


async def test_graphs_are_counted(client: httpx.AsyncClient, services: Services, workspace: Workspace) -> None:
    await seed(services, workspace, 2)
    await shown(client)
    metrics = (await client.get("/metrics")).text
    assert 'priors_graphs_total{mode="computed"}' in metrics
