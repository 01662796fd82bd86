"""Turns that are appended to a session as they happen: stored once, paged backwards, searched, forgotten."""

import asyncio
from typing import Any

import httpx

from app.wiring import Services
from tests.interfaces.http.calls import embed, get, post


def said(*texts: str, **more: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "text": text, **more} for text in texts]}


async def texts(client: httpx.AsyncClient, **params: int) -> list[str]:
    page = (await client.get("/api/sessions/chat/messages", params=params)).json()
    return [message["text"] for message in page["messages"]]


async def test_turns_are_appended_in_their_order(client: httpx.AsyncClient) -> None:
    first = await post(client, "/api/sessions/chat/messages", said("never drop a column in one step", "go on"))
    assert (first["status"], first["turns"], first["stored"]) == ("new", 2, 2)
    second = await post(client, "/api/sessions/chat/messages", said("go on"))
    assert (second["status"], second["turns"], second["stored"]) == ("changed", 3, 1)
    shown = await get(client, "/api/sessions/chat")
    assert [message["ordinal"] for message in shown["messages"]] == [0, 1, 2]
    assert (shown["title"], shown["started_at"] <= shown["ended_at"]) == ("never drop a column in one step", True)
    whole = await post(
        client, "/api/sessions", {"id": "chat", **said("never drop a column in one step", "go on", "go on")}
    )
    assert (whole["stored"], whole["retired"]) == (0, 0)


async def test_a_call_that_is_sent_again_stores_nothing(client: httpx.AsyncClient) -> None:
    for more in ({"id": "m1"}, {"at": "2026-03-02T09:00:00Z"}):
        assert (await post(client, "/api/sessions/chat/messages", said("yes", **more)))["stored"] == 1
        again = await post(client, "/api/sessions/chat/messages", said("yes", **more))
        assert (again["status"], again["stored"]) == ("unchanged", 0)
    for stored in (2, 0):
        keyed = await client.post(
            "/api/sessions/keyed/messages", json=said("yes", "yes"), headers={"Idempotency-Key": "k1"}
        )
        assert keyed.json()["stored"] == stored
    batch = {"messages": [{"role": "user", "text": "yes", "id": "m1"}, {"role": "user", "text": "yes", "id": "m2"}]}
    assert (await post(client, "/api/sessions/chat/messages", batch))["stored"] == 1
    assert await texts(client) == ["yes"] * 3


async def test_turns_that_come_at_once_are_all_kept(client: httpx.AsyncClient) -> None:
    await asyncio.gather(*(post(client, "/api/sessions/chat/messages", said(f"turn {number}")) for number in range(4)))
    assert sorted(await texts(client)) == [f"turn {number}" for number in range(4)]


async def test_the_latest_turns_are_paged_backwards(client: httpx.AsyncClient) -> None:
    await post(client, "/api/sessions/chat/messages", said(*(f"turn {number}" for number in range(5))))
    page = await get(client, "/api/sessions/chat/messages?last=2")
    assert ([message["text"] for message in page["messages"]], page["next"]) == (["turn 3", "turn 4"], 3)
    assert await texts(client, last=2, before=3) == ["turn 1", "turn 2"]
    assert (await get(client, "/api/sessions/chat/messages?last=2&before=1"))["next"] is None
    assert (await client.get("/api/sessions/none/messages")).status_code == 404


async def test_one_session_is_searched(client: httpx.AsyncClient, services: Services) -> None:
    for name in ("chat", "other"):
        await post(client, f"/api/sessions/{name}/messages", said("the pump of the north plant fails in frost"))
    await embed(client, services)
    query = {"query": "what is wrong with the pump", "filters": {"session": "chat"}}
    hits = (await post(client, "/api/search", query))["hits"]
    assert [hit["source"]["uri"] for hit in hits] == ["chat"]
    assert (await post(client, "/api/search", {**query, "filters": {"session": "none"}}))["hits"] == []


async def test_the_turns_of_a_session_are_forgotten(client: httpx.AsyncClient) -> None:
    await post(client, "/api/sessions/chat/messages", said("first", "second"))
    assert (await client.delete("/api/sessions/chat")).status_code == 204
    assert (await client.get("/api/sessions/chat/messages")).status_code == 404
    anew = await post(client, "/api/sessions/chat/messages", said("third"))
    assert anew["turns"] == 1
    assert await texts(client) == ["third"]


async def test_bad_turns_are_refused(client: httpx.AsyncClient) -> None:
    bodies: list[dict[str, Any]] = [{"messages": []}, said(" "), {"messages": [{"role": "owl", "text": "hoo"}]}]
    for body in bodies:
        assert (await client.post("/api/sessions/chat/messages", json=body)).status_code == 400
    assert (await client.post("/api/sessions/%20/messages", json=said("x"))).status_code == 400


async def test_an_id_may_have_slashes(client: httpx.AsyncClient) -> None:
    for path in ("a/b", "a%2Fb"):
        await post(client, f"/api/sessions/{path}/messages", said(path))
    assert (await get(client, "/api/sessions/a/b"))["turns"] == 2
    assert [item["id"] for item in (await get(client, "/api/sessions"))["sessions"]] == ["a/b"]
    assert (await client.get("/api/sessions/%FF/messages")).status_code == 400
