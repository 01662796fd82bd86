"""Lists of memories: conditions, orders, pages, facets and neighbours, over HTTP."""

from typing import Any

import httpx
import pytest

SOURCE = {"kind": "run", "uri": "runs/1"}


def observation(number: int, score: float | None, **detail: Any) -> dict[str, Any]:
    return {
        "kind": "observation", "title": f"o{number}", "final_score": score, "source": SOURCE, "ordinal": number,
        "occurred_at": f"2026-03-{number + 1:02d}T00:00:00Z", "tags": ["all", f"n{number}"],
        "observation": {"narrative": f"What happened in run {number}.", "facts": ["a", "[wiggum] b"], **detail},
    }  # fmt: skip


@pytest.fixture
def given() -> list[dict[str, Any]]:
    """Observations of two task types, and a note."""
    return [
        observation(0, 9.0, task_type="market", verdict="accept"),
        observation(1, 4.0, task_type="market", verdict="reject"),
        observation(2, 6.5, task_type="scouting", verdict="revise"),
        observation(5, None, task_type="scouting"),
        {"kind": "note", "title": "n", "body": "A note about nothing in particular.", "final_score": 6.5},
    ]


async def titles(client: httpx.AsyncClient, query: str = "") -> list[str]:
    answer = await client.get(f"/api/memories?{query}")
    assert answer.status_code == 200, answer.text
    return [memory["title"] for memory in answer.json()["memories"]]


async def send(client: httpx.AsyncClient, memories: list[dict[str, Any]]) -> list[str]:
    ids = []
    for memory in memories:
        ids += (await client.post("/api/memories", json=memory)).json()["ids"]
    return ids


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("task_type=market", {"o0", "o1"}),
        ("task_type=market&task_type=scouting&verdict=reject&verdict=revise", {"o1", "o2"}),
        ("kind=note&kind=cue", {"n"}),
        ("min_score=6.5", {"o0", "o2", "n"}),
        ("min_score=4&max_score=6.5", {"o1", "o2", "n"}),
        ("max_quality=-1", {"o1"}),
        ("min_quality=1", {"o0"}),
        ("tag=all&tag=n2", {"o2"}),
        ("source=runs/*", {"o0", "o1", "o2", "o5"}),
        ("since=2026-03-02T00:00:00Z&until=2026-03-04T00:00:00Z", {"o1", "o2"}),
    ],
)
async def test_each_condition_narrows(
    client: httpx.AsyncClient, given: list[dict[str, Any]], query: str, expected: set[str]
) -> None:
    ids = await send(client, given)
    await client.post(f"/api/memories/{ids[0]}/feedback", json={"rating": 1})
    await client.post(f"/api/memories/{ids[1]}/feedback", json={"rating": -1})
    assert set(await titles(client, query)) == expected
    assert (await client.get(f"/api/memories?{query}&limit=1")).json()["total"] == len(expected)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "n o5 o2 o1 o0"),
        ("order=asc", "o0 o1 o2 o5 n"),
        ("sort=occurred&kind=observation", "o5 o2 o1 o0"),
        ("sort=score", "o0 n o2 o1 o5"),
        ("sort=score&order=asc", "o1 o2 n o0 o5"),
        ("sort=quality", "o0 n o5 o2 o1"),
    ],
)
async def test_every_order_is_the_same_in_pages(
    client: httpx.AsyncClient, given: list[dict[str, Any]], query: str, expected: str
) -> None:
    ids = await send(client, given)
    await client.post(f"/api/memories/{ids[0]}/feedback", json={"rating": 1})
    await client.post(f"/api/memories/{ids[1]}/feedback", json={"rating": -1})
    assert await titles(client, query) == expected.split()
    found: list[str] = []
    totals: list[int | None] = []
    cursor: str | None = ""
    while cursor is not None:
        page = (await client.get(f"/api/memories?{query}&limit=2&cursor={cursor}".removesuffix("&cursor="))).json()
        found += [memory["title"] for memory in page["memories"]]
        totals.append(page["total"])
        cursor = page["next"]
    assert found == expected.split()
    assert totals[0] is not None
    assert totals[1:] == [None] * (len(totals) - 1)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("min_score=11", "min_score"), ("min_quality=-4", "min_quality"), ("min_score=5&max_score=4", "max_score"),
        ("since=2026-03-02T00:00:00Z&until=2026-03-01T00:00:00Z", "until"), ("sort=score&cursor=eA==", "cursor"),
        ("sort=quality&cursor=bmFuIDAwMDAwMDAwLTAwMDAtMDAwMC0wMDAwLTAwMDAwMDAwMDAwMA==", "cursor"),
    ],
)  # fmt: skip
async def test_what_cannot_be_asked_names_its_field(client: httpx.AsyncClient, query: str, field: str) -> None:
    answer = await client.get(f"/api/memories?{query}")
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, field), answer.text


async def test_an_observation_is_shown_whole(client: httpx.AsyncClient, given: list[dict[str, Any]]) -> None:
    ids = await send(client, given)
    shown = (await client.get(f"/api/memories/{ids[0]}")).json()["observation"]
    assert (shown["task_type"], shown["verdict"], shown["facts"]) == ("market", "accept", ["a", "[wiggum] b"])
    assert (await client.get(f"/api/memories/{ids[4]}")).json()["observation"] is None


async def test_facets_count_what_lives(client: httpx.AsyncClient, given: list[dict[str, Any]]) -> None:
    empty = (await client.get("/api/memories/facets")).json()
    assert empty == {"kinds": [], "task_types": [], "verdicts": [], "tags": []}
    ids = await send(client, given)
    await client.post("/api/memories:delete", json={"ids": [ids[3]]})
    facets = (await client.get("/api/memories/facets")).json()
    assert facets["kinds"] == [{"value": "observation", "count": 3}, {"value": "note", "count": 1}]
    assert facets["task_types"] == [{"value": "market", "count": 2}, {"value": "scouting", "count": 1}]
    assert {item["value"] for item in facets["verdicts"]} == {"accept", "reject", "revise"}
    assert facets["tags"][0] == {"value": "all", "count": 3}


async def test_neighbours_are_two_places_away_at_most(client: httpx.AsyncClient, given: list[dict[str, Any]]) -> None:
    ids = await send(client, given)
    around = (await client.get(f"/api/memories/{ids[1]}/neighbours")).json()
    assert [memory["title"] for memory in around] == ["o0", "o2"]
    assert (await client.get(f"/api/memories/{ids[4]}/neighbours")).json() == []
    missing = await client.get("/api/memories/00000000-0000-0000-0000-000000000000/neighbours")
    assert missing.status_code == 404


async def test_search_takes_the_same_conditions(client: httpx.AsyncClient, given: list[dict[str, Any]]) -> None:
    await send(client, given)

    async def found(**filters: Any) -> set[str]:
        answer = await client.post("/api/search", json={"query": "what happened in the run", "filters": filters})
        assert answer.status_code == 200, answer.text
        return {hit["title"] for hit in answer.json()["hits"]}

    assert await found(task_types=["market"], min_score=5) == {"o0"}
    assert await found(verdicts=["revise", "reject"]) == {"o1", "o2"}
    assert await found(max_quality=-1) == set()
    refused = await client.post("/api/search", json={"query": "x", "filters": {"min_score": 5, "max_score": 4}})
    assert refused.json()["errors"][0]["field"] == "filters.max_score"
