"""Links over HTTP: given, shown, taken back, and what they do to a recall."""

from typing import Any
from uuid import uuid4

import httpx
import pytest

from app.recall.retrieval.candidates import survey
from app.storage.memories.filters import Filters
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from tests.interfaces.http.test_routes import stored

PUMP = {"kind": "note", "title": "pump", "body": "The pump at the northern mill failed at noon."}
SPARES = {"kind": "note", "title": "spares", "body": "Whoever orders seals in spring waits six weeks for them."}
OTHERS = [{"kind": "note", "body": f"Entry {number}: bakers knead dough before dawn."} for number in range(5)]
CROWD = [
    {"kind": "note", "title": f"entry {number}", "body": f"Baker {number} kneads dough before dawn."}
    for number in range(20)
]
QUERY = {"query": "why did the northern mill's pump fail", "k": 3}


async def give(client: httpx.AsyncClient, from_id: str, to_id: str, **more: Any) -> httpx.Response:
    link = {"from_id": from_id, "to_id": to_id, "relation": "derived_from", **more}
    return await client.post("/api/links", json={"links": [link]})


async def links(client: httpx.AsyncClient, memory_id: str) -> list[dict[str, Any]]:
    answer = await client.get(f"/api/memories/{memory_id}/around")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["links"]
    return found


async def found(client: httpx.AsyncClient) -> dict[str, dict[str, Any]]:
    answer = await client.post("/api/search", json=QUERY)
    return {hit["title"]: hit["explain"] for hit in answer.json()["hits"]}


async def test_a_link_is_given_shown_and_taken_back(client: httpx.AsyncClient) -> None:
    pump, spares = await stored(client, PUMP, SPARES)
    assert (await give(client, pump, spares, weight=0.5)).json() == {
        "created": 1,
        "updated": 0,
        "unchanged": 0,
        "removed": 0,
    }
    assert (await give(client, pump, spares)).json() == {"created": 0, "updated": 1, "unchanged": 0, "removed": 0}
    assert (await give(client, pump, spares)).json() == {"created": 0, "updated": 0, "unchanged": 1, "removed": 0}
    for one, other, direction, title in ((pump, spares, "out", "spares"), (spares, pump, "in", "pump")):
        (link,) = await links(client, one)
        stored_at = (await client.get(f"/api/memories/{other}")).json()["created_at"]
        apart = {"run_id": None, "source": "", "ordinal": None, "user": "", "task_type": "", "occurred_at": None}
        linked = {"relation": "derived_from", "kind": "note", "weight": 1.0, "memory_id": other, "title": title}
        assert link == {**linked, **apart, "direction": direction, "created_at": stored_at}
    taken = {"from_id": pump, "to_id": spares, "relation": "derived_from"}
    for count in (1, 0):
        removed = await client.post("/api/links", json={"remove": taken})
        assert removed.json() == {"created": 0, "updated": 0, "unchanged": 0, "removed": count}
        assert await links(client, pump) == []
    both = await client.post("/api/links", json={"links": [{**taken}], "remove": taken})
    assert (both.status_code, both.json()["errors"][0]["field"]) == (400, "remove")


async def test_a_list_calls_what_has_no_title_by_the_beginning_of_its_text(client: httpx.AsyncClient) -> None:
    long = " ".join(["Seals for the mill come late."] * 10)
    first, second, third = await stored(client, PUMP, {"kind": "note", "body": long}, OTHERS[0])
    await give(client, first, second)
    await give(client, first, third)
    assert [link["title"] for link in await links(client, first)] == [f"{long[:120]} …", OTHERS[0]["body"]]
    recall = (await client.post("/api/search", json={"query": "seals for the mill", "k": 1})).json()
    logged = (await client.get(f"/api/recalls/{recall['recall_id']}")).json()
    assert [hit["title"] for hit in logged["hits"]] == [f"{long[:120]} …"]
    changes = (await client.get("/api/audit", params={"id": second, "action": "add"})).json()["entries"]
    assert dict(zip(changes[0]["ids"], changes[0]["titles"], strict=True))[second] == f"{long[:120]} …"


async def test_what_one_is_linked_with_comes_back_as_a_pair_and_says_why(client: httpx.AsyncClient) -> None:
    pump, spares, *_ = await stored(client, PUMP, SPARES, *OTHERS)
    assert "spares" not in await found(client)
    await give(client, pump, spares)
    explain = await found(client)
    assert list(explain) == ["pump", "spares"]
    assert explain["spares"]["links"] > 0
    assert explain["spares"]["link"] == {
        "relation": "derived_from", "direction": "in", "memory_id": pump, "title": "pump",
    }  # fmt: skip
    assert explain["pump"]["links"] < explain["spares"]["links"]


async def test_the_log_keeps_the_link_and_no_text(client: httpx.AsyncClient) -> None:
    pump, spares, *_ = await stored(client, PUMP, SPARES, *OTHERS)
    await give(client, pump, spares)
    recall = (await client.post("/api/search", json=QUERY)).json()
    logged = (await client.get(f"/api/recalls/{recall['recall_id']}")).json()
    (_, explain) = (hit["explain"] for hit in logged["hits"])
    assert explain["link"] == {"relation": "derived_from", "direction": "in", "memory_id": pump, "title": ""}


async def test_what_is_deleted_is_neither_shown_nor_brought_nor_does_it_bring(client: httpx.AsyncClient) -> None:
    pump, spares, *_ = await stored(client, PUMP, SPARES, *OTHERS)
    await give(client, pump, spares)
    await client.patch("/api/memories", json={"state": "deleted", "ids": [spares]})
    assert await links(client, pump) == []
    assert "spares" not in await found(client)
    await client.patch("/api/memories", json={"state": "live", "ids": [spares]})
    await client.patch("/api/memories", json={"state": "deleted", "ids": [pump]})
    assert await links(client, spares) == []
    assert "spares" not in await found(client)


async def crowded(client: httpx.AsyncClient, *, weight: float) -> tuple[float, list[str]]:
    """What the spares gain by the only link, with the pump, and 20 memories that are then linked with it, too."""
    crowd = await stored(client, *CROWD)
    pump, spares = await stored(client, PUMP, SPARES)
    await give(client, spares, pump)
    alone = await gained(client, "spares")
    assert alone > 0
    for memory_id in crowd:
        await give(client, memory_id, pump, weight=weight)
    return alone, crowd


async def gained(client: httpx.AsyncClient, title: str, **more: Any) -> float:
    answer = await client.post("/api/search", json={**QUERY, "k": 50, **more})
    return sum(float(hit["explain"]["links"]) for hit in answer.json()["hits"] if hit["title"] == title)


async def test_of_many_links_the_strongest_count(client: httpx.AsyncClient) -> None:
    alone, _ = await crowded(client, weight=0.001)
    assert await gained(client, "spares") == pytest.approx(alone, rel=0.02)


async def test_retired_memories_take_no_place_and_no_share(client: httpx.AsyncClient) -> None:
    alone, crowd = await crowded(client, weight=1.0)
    assert await gained(client, "spares") == 0.0
    await client.patch("/api/memories", json={"state": "deleted", "ids": crowd})
    assert await gained(client, "spares") == pytest.approx(alone)


async def test_what_a_filter_leaves_out_takes_no_place_and_no_share(client: httpx.AsyncClient) -> None:
    pump, spares, *crowd = await stored(client, {**PUMP, "tags": ["mill"]}, {**SPARES, "tags": ["mill"]}, *CROWD)
    await give(client, spares, pump)
    only = {"filters": {"tags": ["mill"]}}
    alone = await gained(client, "spares", **only)
    assert alone > 0
    for memory_id in crowd:
        await give(client, memory_id, pump)
    assert await gained(client, "spares", **only) == pytest.approx(alone)


async def test_links_that_pass_nothing_on_cost_a_recall_nothing(
    services: Services, client: httpx.AsyncClient, workspace: Workspace
) -> None:
    pump, spares, *_ = await stored(client, PUMP, SPARES, *OTHERS)

    async def counts() -> bool:
        async with services.database.session(workspace, transaction=False) as session:
            found = await survey(session, "pump", filters=Filters(), language=None)
        assert found is not None
        return found.linked

    async with services.database.session(workspace) as session:
        similar = (
            "INSERT INTO links (workspace_id, from_id, to_id, relation)"
            " VALUES (%(workspace_id)s, %(memory_id)s, %(other)s, 'similar')"
        )
        await session.execute(similar, {"memory_id": pump, "other": spares})
    assert not await counts()
    await give(client, pump, spares)
    assert await counts()


async def test_what_a_filter_leaves_out_is_not_brought(client: httpx.AsyncClient) -> None:
    pump, spares, *_ = await stored(client, {**PUMP, "tags": ["mill"]}, SPARES, *OTHERS)
    await give(client, pump, spares)
    answer = await client.post("/api/search", json={**QUERY, "filters": {"tags": ["mill"]}})
    assert [hit["title"] for hit in answer.json()["hits"]] == ["pump"]


@pytest.mark.parametrize(
    ("change", "field", "says"),
    [
        ({"relation": "mentions"}, "relation", "give a link another relation"),
        ({"relation": 7}, "relation", "must be a text; got 7"),
        ({"weight": 0}, "weight", "0"),
        ({"weight": 1.1}, "weight", "1"),
        ({"to_id": "no id"}, "to_id", "must be an id, such as"),
        ({"since": 1}, "since", "is no known field"),
    ],
)
async def test_a_link_that_cannot_be_says_why(
    client: httpx.AsyncClient, change: dict[str, Any], field: str, says: str
) -> None:
    answer = await client.post(
        "/api/links",
        json={"links": [{"from_id": str(uuid4()), "to_id": str(uuid4()), "relation": "derived_from", **change}]},
    )
    assert answer.status_code == 400
    (error,) = answer.json()["errors"]
    assert field in error["field"]
    assert says in error["message"]


async def test_memories_that_are_not_there_are_not_linked(client: httpx.AsyncClient) -> None:
    (pump,) = await stored(client, PUMP)
    for other, status in ((pump, 400), (str(uuid4()), 404)):
        answer = await give(client, pump, other)
        assert answer.status_code == status, answer.text
    assert (await client.post("/api/links", json={"links": []})).status_code == 400
    missing = await client.get(f"/api/memories/{uuid4()}/around")
    assert (missing.status_code, missing.headers["content-type"]) == (404, "application/problem+json")
    assert await links(client, pump) == []


async def test_a_text_that_took_anothers_place_in_a_report_supersedes_it(client: httpx.AsyncClient) -> None:
    before = {"path": "mill/v1/notes.md", "content": "# Mill\n\nThe northern pump runs on diesel and fails at noon."}
    await client.post("/api/reports", json=before)
    (old,) = (await client.get("/api/memories")).json()["memories"]
    await client.post(
        "/api/reports", json={**before, "content": "# Mill\n\nSince March an engine of steam drives it all."}
    )
    (new,) = (await client.get("/api/memories")).json()["memories"]
    assert old["id"] != new["id"]
    of_the_old = [(link["relation"], link["direction"], link["memory_id"]) for link in await links(client, old["id"])]
    assert of_the_old == [("supersedes", "in", new["id"])]
    assert await links(client, new["id"]) == []
