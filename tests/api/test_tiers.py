"""Tiers over HTTP: shown, filtered by, and pinned."""

from typing import Any

import httpx

from tests.api.test_routes import stored

TEA = {"kind": "note", "title": "tea", "body": "Green tea is poured at eighty degrees."}
OLD = {
    "kind": "note",
    "title": "old tea",
    "body": "Tea was boiled in those days.",
    "occurred_at": "1999-01-01T00:00:00Z",
}


async def found(client: httpx.AsyncClient, tiers: list[str]) -> list[Any]:
    answer = await client.post("/api/search", json={"query": "how to make tea", "filters": {"tiers": tiers}})
    assert answer.status_code == 200, answer.text
    return [(hit["title"], hit["tier"], hit["access_count"]) for hit in answer.json()["hits"]]


async def test_a_search_and_a_list_are_filtered_by_tier_and_a_pin_moves(client: httpx.AsyncClient) -> None:
    tea, _ = await stored(client, TEA, OLD)
    assert await found(client, ["short_term"]) == [("tea", "short_term", 0)]
    assert await found(client, ["long_term"]) == [("old tea", "long_term", 0)]
    assert len(await found(client, [])) == 2
    listed = (await client.get("/api/memories", params={"tier": "short_term"})).json()
    assert ([memory["title"] for memory in listed["memories"]], listed["total"]) == (["tea"], 1)
    pinned = (await client.put(f"/api/memories/{tea}/tier", json={"tier": "long_term"})).json()
    assert (pinned["tier"], pinned["pinned"]) == ("long_term", True)
    assert await found(client, ["short_term"]) == []
    assert (await client.delete(f"/api/memories/{tea}/tier")).status_code == 204
    assert (await client.get(f"/api/memories/{tea}")).json()["pinned"] is False
    assert (await client.put(f"/api/memories/{tea}/tier", json={"tier": "working"})).status_code == 400
    assert (await client.get("/api/status")).json()["tiers"] == {}
