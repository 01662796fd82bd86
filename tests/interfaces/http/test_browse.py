"""Lists of memories: conditions, orders, pages, facets and neighbours, over HTTP."""

from collections.abc import AsyncIterator, Iterable
from typing import Any
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio

from app.storage.memories import filters
from tests.conftest import WITHOUT_TLS

SOURCE = {"kind": "run", "uri": "runs/1"}


def observation(number: int, score: float | None, **detail: Any) -> dict[str, Any]:
    return {
        "kind": "observation", "title": f"o{number}", "final_score": score, "source": SOURCE, "ordinal": number,
        "occurred_at": f"2026-03-{number + 1:02d}T00:00:00Z", "tags": ["all", f"n{number}"],
        "observation": {"narrative": f"What happened in run {number}.", "facts": ["a", "[wiggum] b"], **detail},
    }  # fmt: skip


GIVEN = (
    observation(0, 9.0, task_type="market", verdict="accept"),
    observation(1, 4.0, task_type="market", verdict="reject"),
    observation(2, 6.5, task_type="scouting", verdict="revise"),
    observation(5, None, task_type="scouting"),
    {"kind": "note", "title": "n", "body": "A note about nothing in particular.", "final_score": 6.5},
)
"""Observations of two task types, and a note."""


async def titles(client: httpx.AsyncClient, query: str = "") -> list[str]:
    answer = await client.get(f"/api/memories?{query}")
    assert answer.status_code == 200, answer.text
    return [memory["title"] for memory in answer.json()["memories"]]


async def send(client: httpx.AsyncClient, memories: Iterable[dict[str, Any]]) -> list[str]:
    ids = []
    for memory in memories:
        ids += (await client.post("/api/memories", json=memory)).json()["ids"]
    return ids


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def read(server: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client in a workspace of GIVEN, the first rated up and the second down, that no test changes."""
    headers = {"X-Workspace": f"browsed-{uuid4().hex[:12]}"}
    async with httpx.AsyncClient(base_url=server, headers=headers, timeout=60, verify=WITHOUT_TLS) as client:
        for memory_id, rating in zip(await send(client, GIVEN), (1, -1), strict=False):
            await client.post(f"/api/memories/{memory_id}/feedback", json={"rating": rating})
        yield client


@pytest.mark.parametrize("few", [filters.FEW, 0])
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
    read: httpx.AsyncClient, query: str, expected: set[str], few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether they are looked up by an index or not."""
    monkeypatch.setattr(filters, "FEW", few)
    assert set(await titles(read, query)) == expected
    assert (await read.get(f"/api/memories?{query}&limit=1")).json()["total"] == len(expected)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "n o5 o2 o1 o0"),
        ("order=asc", "o0 o1 o2 o5 n"),
        ("sort=occurred&kind=observation", "o5 o2 o1 o0"),
        ("sort=score", "o0 n o2 o1 o5"),
        ("sort=score&order=asc", "o1 o2 n o0 o5"),
        ("sort=occurred&kind=observation&order=asc", "o0 o1 o2 o5"),
        ("sort=quality", "o0 n o5 o2 o1"),
        ("sort=quality&order=asc", "o1 o2 o5 n o0"),
    ],
)
async def test_every_order_is_the_same_in_pages(read: httpx.AsyncClient, query: str, expected: str) -> None:
    assert await titles(read, query) == expected.split()
    found: list[str] = []
    totals: list[int | None] = []
    cursor: str | None = ""
    while cursor is not None:
        page = (await read.get(f"/api/memories?{query}&limit=2&cursor={cursor}".removesuffix("&cursor="))).json()
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


async def ids_of(client: httpx.AsyncClient) -> dict[str, str]:
    return {memory["title"]: memory["id"] for memory in (await client.get("/api/memories")).json()["memories"]}


async def test_an_observation_is_shown_whole(read: httpx.AsyncClient) -> None:
    ids = await ids_of(read)
    shown = (await read.get(f"/api/memories/{ids['o0']}")).json()["observation"]
    assert (shown["task_type"], shown["verdict"], shown["facts"]) == ("market", "accept", ["a", "[wiggum] b"])
    assert (await read.get(f"/api/memories/{ids['n']}")).json()["observation"] is None


async def test_facets_count_what_lives(client: httpx.AsyncClient) -> None:
    empty = (await client.get("/api/memories/facets")).json()
    assert empty == {"kinds": [], "task_types": [], "verdicts": [], "tags": []}
    ids = await send(client, GIVEN)
    await client.patch("/api/memories", json={"state": "deleted", "ids": [ids[3]]})
    facets = (await client.get("/api/memories/facets")).json()
    assert facets["kinds"] == [{"value": "observation", "count": 3}, {"value": "note", "count": 1}]
    assert facets["task_types"] == [{"value": "market", "count": 2}, {"value": "scouting", "count": 1}]
    assert {item["value"] for item in facets["verdicts"]} == {"accept", "reject", "revise"}
    assert facets["tags"][0] == {"value": "all", "count": 3}


async def test_facets_are_of_the_newest(read: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters, "FACETS", filters.FACETS.replace(str(filters.FACETS_OF), "1"))
    assert (await read.get("/api/memories/facets")).json()["kinds"] == [{"value": "note", "count": 1}]


async def test_neighbours_are_two_places_away_at_most(read: httpx.AsyncClient) -> None:
    ids = await ids_of(read)
    around = (await read.get(f"/api/memories/{ids['o1']}/around")).json()["neighbours"]
    assert [memory["title"] for memory in around] == ["o0", "o2"]
    assert (await read.get(f"/api/memories/{ids['n']}/around")).json()["neighbours"] == []
    missing = await read.get("/api/memories/00000000-0000-0000-0000-000000000000/around")
    assert missing.status_code == 404


async def test_search_takes_the_same_conditions(read: httpx.AsyncClient) -> None:
    async def found(**filters: Any) -> set[str]:
        answer = await read.post("/api/search", json={"query": "what happened in the run", "filters": filters})
        assert answer.status_code == 200, answer.text
        return {hit["title"] for hit in answer.json()["hits"]}

    assert await found(task_types=["market"], min_score=5) == {"o0"}
    assert await found(verdicts=["revise", "reject"]) == {"o1", "o2"}
    assert await found(max_quality=-1) == {"o1"}
    refused = await read.post("/api/search", json={"query": "x", "filters": {"min_score": 5, "max_score": 4}})
    assert refused.json()["errors"][0]["field"] == "filters.max_score"


async def test_runs_are_listed_with_what_they_spent(client: httpx.AsyncClient) -> None:
    stages = {
        "scout": {"tokens": 100, "cost": 0.5},
        "judge": {"prompt_tokens": 20, "completion_tokens": 5},
        "note": "x",
    }
    run = {
        "task": "t",
        "task_type": "market",
        "agent": "judge",
        "verdict": "accept",
        "output": "long",
        "stages": stages,
    }
    await client.post("/api/runs", json={**run, "run_id": "a", "final_score": 8, "finished_at": "2026-03-01T00:00:00Z"})
    await client.post("/api/runs", json={"run_id": "b", "stages": {"x": {"tokens": True, "cost": -1}}})
    b, a = (await client.get("/api/runs")).json()["runs"]
    assert (a["tokens"], a["cost"], a["verdict"], "output" in a) == (125, 0.5, "accept", False)
    assert (b["tokens"], b["cost"], b["final_score"]) == (None, None, None)
    for query in ("task_type=market", "verdict=accept", "agent=judge"):
        assert [item["run_id"] for item in (await client.get(f"/api/runs?{query}")).json()["runs"]] == ["a"]
    assert (a["final_score"], a["finished_at"]) == (8, "2026-03-01T00:00:00Z")


async def test_stages_stay_in_the_order_in_which_they_were_sent(client: httpx.AsyncClient) -> None:
    stages = {name: {"tokens": 1, "cost": 0.1, "model": "m"} for name in ("scout", "director", "judge", "a")}
    await client.post("/api/runs", json={"run_id": "r", "stages": stages})
    stored = (await client.get("/api/runs/r")).json()["run"]["stages"]
    assert [(name, list(stage)) for name, stage in stored.items()] == [(name, list(stages[name])) for name in stages]


async def test_a_run_shows_why_each_memory_was_given(client: httpx.AsyncClient) -> None:
    await client.post("/api/memories", json={"kind": "note", "body": "Verify producers in the register."})
    await client.post("/api/history", json={"query": "verify producers register", "run_id": "a"})
    (given,) = (await client.get("/api/runs/a")).json()["given"]
    assert given["query"] == "verify producers register"
    assert given["explain"]["score"] == pytest.approx(given["score"], abs=1e-4)


async def test_when_it_is_asked_can_be_given_with_the_query(client: httpx.AsyncClient) -> None:
    for month, what in (("03", "tea"), ("01", "oil")):
        body = f"The verdict of the judge about {what}."
        given = {"kind": "note", "body": body, "occurred_at": f"2024-{month}-10T00:00:00Z"}
        await client.post("/api/memories", json=given)
    for path in ("/api/search", "/api/history"):
        asked = {"query": "the verdict of last month", "now": "2024-04-20T08:00:00+02:00"}
        first, second = (await client.post(path, json=asked)).json()["hits"]
        assert (first["occurred_at"], second["explain"]["dated"]) == ("2024-03-10T00:00:00Z", 0)
    refused = await client.post("/api/search", json={"query": "x", "now": "yesterday"})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "now")


async def test_a_re_ranker_that_is_asked_for_and_missing_is_named(client: httpx.AsyncClient) -> None:
    given = {"kind": "note", "body": "Kerosene lamps stood beside the harbour office."}
    (await client.post("/api/memories", json=given)).raise_for_status()
    for path in ("/api/search", "/api/history"):
        answer = (await client.post(path, json={"query": "kerosene lamps", "rerank": True})).json()
        (missing,) = (item for item in answer["degraded"] if item["arm"] == "reranker")
        assert "PRIORS_RERANKER" in missing["reason"]
        assert answer["hits"][0]["body"] == given["body"]
        plain = (await client.post(path, json={"query": "kerosene lamps"})).json()
        assert all(item["arm"] != "reranker" for item in plain["degraded"])


async def test_weights_can_be_given_with_the_query(client: httpx.AsyncClient) -> None:
    for score in (2, 9):
        body = f"Producers are verified in the register, said the judge of run {score}."
        await client.post("/api/memories", json={"kind": "note", "body": body, "final_score": score})

    async def best(**weights: Any) -> dict[str, Any]:
        asked = {"query": "judge of run 2 verified producers", "weights": weights or None}
        hits: list[dict[str, Any]] = (await client.post("/api/search", json=asked)).json()["hits"]
        return hits[0]

    assert (await best(relevance=1, quality=0))["final_score"] == 2
    assert (await best(relevance=0, quality=1))["final_score"] == 9
    assert (await best(relevance=0.5, quality=0.5, recency=False))["explain"]["recency"] == 1
    refused = await client.post("/api/history", json={"query": "x", "weights": {"relevance": 2}})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "weights.relevance")


async def test_the_status_counts_and_times(client: httpx.AsyncClient) -> None:
    empty = (await client.get("/api/status")).json()
    assert (empty["live"], empty["language"], empty["latencies"]) == (0, None, [])
    ids = await send(client, [{"kind": "note", "body": f"Lesson {number}."} for number in range(3)])
    await client.patch("/api/memories", json={"state": "deleted", "ids": ids[:1]})
    await client.post("/api/memories", json={"kind": "note", "body": "..."})
    await client.post("/api/search", json={"query": "lesson"})
    status = (await client.get("/api/status")).json()
    assert (status["live"], status["waiting"], status["recalls"], status["mode"]) == (2, 2, 1, "lexical")
    assert "2 of 2 memories have no vector yet" in status["reasons"][0]
    assert (status["retired"], status["refused"]) == ({"deleted": 1}, {"punctuation": 1})
    assert status["database_bytes"] > 1_000_000
    (latency,) = status["latencies"]
    assert latency["purpose"] == "search"
    assert 0 < latency["p50"] <= latency["p95"] <= latency["p99"]


async def test_ingestions_are_logged_with_each_file(client: httpx.AsyncClient) -> None:
    assert (await client.get("/api/ingestions")).json() == []
    report = {"path": "a/b.md", "content": "# Lesson\n\nThe scout found twelve producers in the register."}
    for _ in range(2):
        await client.post("/api/reports", json=report)
    (logged,) = (await client.get("/api/ingestions")).json()
    assert logged["counts"] == {"new": 1}
    (file,) = logged["files"]
    assert (file["path"], file["status"], file["chunks"]) == ("a/b.md", "new", 1)
    assert (await client.get("/api/ingestions?limit=0")).status_code == 400


async def test_older_ingestions_can_be_asked_for(client: httpx.AsyncClient) -> None:
    for place, path in enumerate(("a.md", "b.md", "c.md")):
        await client.post("/api/reports", json={"path": path, "content": f"# Lesson {place}\n\nTwelve producers."})
    everything = (await client.get("/api/ingestions")).json()
    newest, *older = [logged["id"] for logged in everything]
    found = (await client.get(f"/api/ingestions?before={newest}")).json()
    assert [logged["id"] for logged in found] == older
    assert (await client.get("/api/ingestions?failed=true")).json() == []
