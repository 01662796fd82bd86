"""`stable` histories over HTTP: one run's calls share a prefix, and what happens in between is seen."""

import asyncio
from itertools import pairwise
from typing import Any
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio

from app.foundation.db.database import Database

LESSONS = {
    "retries": "Retries without jitter made the payment service fall over again after each outage.",
    "cache": "The cache of search results was keyed without the tenant and leaked between customers.",
    "schema": "Dropping a column before the old release was gone broke the schema migration.",
    "upload": "Large uploads were buffered in memory until the upload service was killed.",
}
QUERIES = {
    "retries": "jitter of retries after an outage",
    "cache": "search results cached by tenant",
    "schema": "schema migration that drops a column",
    "upload": "memory of large uploads",
}


@pytest_asyncio.fixture(loop_scope="session")
async def stored(client: httpx.AsyncClient) -> dict[str, str]:
    """Ids of LESSONS, by name."""
    return {name: (await store(client, name))["ids"][0] for name in LESSONS}


async def store(client: httpx.AsyncClient, name: str, **changes: Any) -> dict[str, Any]:
    memory = {"kind": "note", "title": name, "body": LESSONS[name], "final_score": 8.0, **changes}
    answer = await client.post("/api/memories?wait=true", json=memory)
    found: dict[str, Any] = answer.raise_for_status().json()
    return found


async def history(client: httpx.AsyncClient, name: str, **given: Any) -> dict[str, Any]:
    asked = {"query": QUERIES[name], "run_id": "run", "k": 1, "stable": True, "budget_tokens": 400, **given}
    answer = await client.post("/api/history", json=asked)
    found: dict[str, Any] = answer.raise_for_status().json()
    return found


def continues(before: dict[str, Any], after: dict[str, Any]) -> bool:
    return bool(after["markdown"].startswith(before["markdown"].rstrip("\n")))


async def test_each_call_begins_with_the_bytes_of_the_one_before(
    client: httpx.AsyncClient, stored: dict[str, str]
) -> None:
    made = [await history(client, name) for name in LESSONS]
    assert [[hit["id"] for hit in answer["hits"]] for answer in made] == [[stored[name]] for name in LESSONS]
    assert (made[0]["reused_tokens"], made[0]["reused_share"], made[0]["kept"]) == (0, 0, [])
    for before, after in pairwise(made):
        assert continues(before, after)
        assert (after["reused_tokens"], after["broken"]) == (before["tokens"], None)
        assert after["reused_share"] == pytest.approx(before["tokens"] / after["tokens"])
    assert made[-1]["kept"] == list(stored.values())[:-1]


async def test_what_is_found_again_stays_where_it_stood(client: httpx.AsyncClient, stored: dict[str, str]) -> None:
    first, second, third = [await history(client, name) for name in ("retries", "cache", "retries")]
    assert third["markdown"] == second["markdown"]
    assert (third["reused_share"], third["hits"][0]["id"]) == (1, first["hits"][0]["id"])
    assert third["kept"] == [stored["retries"], stored["cache"]]


@pytest.mark.usefixtures("stored")
async def test_the_hits_are_those_of_a_section_that_stands_alone(client: httpx.AsyncClient) -> None:
    await history(client, "retries")
    alone, stable = [await history(client, "upload", k=4, stable=value) for value in (False, True)]
    assert [hit["id"] for hit in stable["hits"]] == [hit["id"] for hit in alone["hits"]]
    assert not {"reused_tokens", "reused_share", "kept", "broken"} & set(alone)


@pytest.mark.usefixtures("stored")
async def test_what_was_found_and_not_shown_is_logged(client: httpx.AsyncClient) -> None:
    found = await history(client, "retries", query="the service failed, the cache leaked, the migration broke", k=1)
    logged = (await client.get(f"/api/recalls/{found['recall_id']}")).raise_for_status().json()
    assert len(logged["hits"]) == 1
    assert logged["withheld"]
    assert {item["reason"] for item in logged["withheld"]} <= {"room", "threshold"}


async def test_a_judgement_in_between_changes_no_byte(client: httpx.AsyncClient, stored: dict[str, str]) -> None:
    before = await history(client, "retries")
    assert (await store(client, "retries", final_score=2.0))["updated"] == 1
    rated = await client.post(f"/api/memories/{stored['retries']}/feedback", json={"rating": -1})
    assert rated.is_success
    after = await history(client, "cache")
    assert continues(before, after)
    assert " · 8.0/10" in after["markdown"]
    another = await history(client, "retries", run_id="another")
    assert " · 2.0/10" in another["markdown"]


async def test_a_deleted_memory_is_not_given_again(client: httpx.AsyncClient, stored: dict[str, str]) -> None:
    made = [await history(client, name) for name in ("retries", "cache", "schema")]
    await client.patch("/api/memories", json={"state": "deleted", "ids": [stored["cache"]]})
    after = await history(client, "schema")
    assert after["broken"] == {"memory_id": stored["cache"], "reason": "withdrawn"}
    assert (after["kept"], after["reused_tokens"]) == ([stored["retries"]], made[0]["tokens"])
    assert continues(made[0], after)
    assert LESSONS["cache"] not in after["markdown"]
    assert LESSONS["schema"] in after["markdown"]


async def test_a_memory_destroyed_with_the_trash_leaves_no_text_behind(
    client: httpx.AsyncClient, stored: dict[str, str], database: Database
) -> None:
    await history(client, "cache", run_id=stored["cache"])
    async with database.across() as session:
        statement = "SELECT blocks::text FROM run_sections WHERE run_id = %(run_id)s"
        blocks = await session.value(statement, {"run_id": stored["cache"]})
    assert stored["cache"] in blocks
    assert not any(word in blocks for word in ("tenant", "keyed", "leaked"))


async def test_an_edited_memory_ends_the_prefix_and_is_shown_anew(
    client: httpx.AsyncClient, stored: dict[str, str]
) -> None:
    first = await history(client, "retries")
    await history(client, "cache")
    await store(client, "cache", occurred_at="2026-03-01T00:00:00Z")
    after = await history(client, "cache")
    assert after["broken"] == {"memory_id": stored["cache"], "reason": "edited"}
    assert continues(first, after)
    assert after["markdown"].count("2026-03-01") == 1


async def test_filters_hold_for_what_stands(client: httpx.AsyncClient, stored: dict[str, str]) -> None:
    await history(client, "retries")
    message = {"kind": "message", "title": "Ann", "body": "We buffered uploads in memory."}
    await client.post("/api/memories?wait=true", json=message)
    after = await history(client, "upload", filters={"kinds": ["message"]})
    assert after["broken"] == {"memory_id": stored["retries"], "reason": "filtered"}
    assert LESSONS["retries"] not in after["markdown"]
    assert [hit["kind"] for hit in after["hits"]] == ["message"]


async def test_without_room_what_was_found_comes_first(client: httpx.AsyncClient, stored: dict[str, str]) -> None:
    first = await history(client, "retries")
    budget = first["tokens"] + 10
    after = await history(client, "cache", budget_tokens=budget)
    assert after["broken"] == {"memory_id": stored["retries"], "reason": "budget"}
    assert LESSONS["cache"] in after["markdown"]
    assert LESSONS["retries"] not in after["markdown"]
    assert after["tokens"] <= budget
    assert 0 < after["reused_tokens"] < 40, "the heading and the frame"


@pytest.mark.usefixtures("stored")
async def test_a_query_that_finds_nothing_leaves_the_section_as_it_is(client: httpx.AsyncClient) -> None:
    before = await history(client, "retries")
    after = await history(client, "retries", query="zygomorphic qwxz")
    assert (after["hits"], after["markdown"], after["reused_share"]) == ([], before["markdown"], 1)


@pytest.mark.usefixtures("stored")
async def test_calls_at_once_continue_one_another(client: httpx.AsyncClient) -> None:
    names = list(LESSONS) * 3
    made = await asyncio.gather(*(history(client, name) for name in names))
    chain = sorted(made, key=lambda answer: (answer["tokens"], answer["reused_tokens"]))
    assert [answer["broken"] for answer in made] == [None] * len(names)
    assert all(continues(before, after) for before, after in pairwise(chain))
    assert sum(answer["reused_tokens"] == 0 for answer in made) == 1
    assert all(LESSONS[name] in answer["markdown"] for name, answer in zip(names, made, strict=True))
    last = await history(client, "retries")
    assert (last["markdown"], last["reused_share"]) == (chain[-1]["markdown"], 1)


@pytest.mark.usefixtures("stored")
async def test_runs_and_workspaces_have_sections_of_their_own(client: httpx.AsyncClient) -> None:
    await history(client, "retries")
    other = await history(client, "cache", run_id="other")
    assert (other["reused_tokens"], other["kept"], other["broken"]) == (0, [], None)
    stranger = {"X-Workspace": f"stranger-{uuid4().hex[:8]}"}
    async with httpx.AsyncClient(base_url=client.base_url, headers=stranger, timeout=60) as another:
        found = await history(another, "retries")
        assert (found["markdown"], found["tokens"], found["reused_tokens"]) == ("", 0, 0)
        await store(another, "cache")
        found = await history(another, "cache")
    assert (found["reused_tokens"], LESSONS["retries"] in found["markdown"]) == (0, False)


async def test_the_log_says_what_stood(client: httpx.AsyncClient, stored: dict[str, str]) -> None:
    await history(client, "retries")
    after = await history(client, "cache")
    logged = (await client.get(f"/api/recalls/{after['recall_id']}")).json()
    assert (logged["parameters"]["stable"], logged["parameters"]["kept"]) == (True, [stored["retries"]])
    assert [hit["id"] for hit in logged["hits"]] == [stored["cache"]]
    assert logged["tokens"] == after["tokens"]
    await client.post("/api/runs", json={"run_id": "run"})
    given = (await client.get("/api/runs/run")).json()["given"]
    assert [item["id"] for item in given] == [stored["retries"], stored["cache"]]


@pytest.mark.parametrize("run", [{}, {"run_id": None}, {"run_id": ""}], ids=["none", "null", "empty"])
async def test_without_a_run_there_is_nothing_to_continue(client: httpx.AsyncClient, run: dict[str, Any]) -> None:
    answer = await client.post("/api/history", json={"query": "x", "stable": True, **run})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "run_id")
    assert "stable" in answer.json()["errors"][0]["message"]
