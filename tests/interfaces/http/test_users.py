"""Users of a workspace: recalls of one see nothing of the others, and nobody's memories are everybody's."""

import httpx

from app.wiring import Services
from tests.interfaces.http.calls import embed, post

HAY = "The zebra eats hay in the morning."
WATER = "The zebra drinks water at noon."
QUERY = "what does the zebra eat and drink"


async def remembered(client: httpx.AsyncClient, body: str, user: str = "") -> str:
    stored = await post(client, "/api/memories", {"kind": "note", "body": body, "user": user})
    assert stored["stored"] == 1
    return str(stored["ids"][0])


async def found(client: httpx.AsyncClient, user: str) -> list[tuple[str, str]]:
    answer = await post(client, "/api/search", {"query": QUERY, "user": user})
    return sorted((hit["user"], hit["body"]) for hit in answer["hits"])


async def test_a_recall_sees_its_users_memories_and_nobodys(client: httpx.AsyncClient, services: Services) -> None:
    await remembered(client, WATER)
    assert await found(client, "") == await found(client, "alice") == [("", WATER)]
    for user in ("alice", "bob"):
        await remembered(client, HAY, user)
    again = await post(client, "/api/memories", {"kind": "note", "body": HAY, "user": "bob"})
    assert again["unchanged"] == 1
    for embedded in (False, True):
        if embedded:
            await embed(client, services)
        assert await found(client, "alice") == [("", WATER), ("alice", HAY)]
        assert await found(client, "bob") == [("", WATER), ("bob", HAY)]
        assert await found(client, "") == await found(client, "carol") == [("", WATER)]
        told = await post(client, "/api/history", {"query": QUERY, "user": "carol"})
        assert HAY not in told["markdown"]


async def test_a_line_of_a_bulk_call_may_name_its_own_user(client: httpx.AsyncClient) -> None:
    lines = [f'{{"kind": "note", "body": "{HAY}", "user": "{user}"}}' for user in ("alice", "bob", "alice", " no", "")]
    answer = (await client.post("/api/memories:bulk", content="\n".join(lines).encode())).json()
    assert (answer["stored"], answer["unchanged"]) == (3, 1)
    assert [(item["line"], item["reason"].partition(":")[0]) for item in answer["rejected"]] == [(4, "user")]
    assert answer["ids"][0] == answer["ids"][2] != answer["ids"][1]
    assert (await client.post("/api/search", json={"query": "x", "user": "a\x00"})).status_code == 400


async def test_a_session_belongs_to_its_user(client: httpx.AsyncClient) -> None:
    said = {"messages": [{"role": "user", "text": HAY}], "user": "alice"}
    await post(client, "/api/sessions/s1/messages", said)
    refused = await client.post("/api/sessions/s1/messages", json={**said, "user": "bob"})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "id")
    assert (await client.post("/api/sessions", json={**said, "id": "s1", "user": "bob"})).status_code == 400
    grown = await post(client, "/api/sessions/s1/messages", {"messages": [{"role": "assistant", "text": WATER}]})
    assert grown["turns"] == 2
    (listed,) = (await client.get("/api/sessions", params={"user": "alice"})).json()["sessions"]
    assert (listed["id"], listed["user"]) == ("s1", "alice")
    assert await found(client, "alice") == [("alice", WATER), ("alice", HAY)]
    assert await found(client, "bob") == []
    for user, status in (("alice", 200), ("bob", 404)):
        assert (await client.get("/api/sessions/s1/messages", params={"user": user})).status_code == status
    assert (await client.delete("/api/sessions/s1", params={"user": "bob"})).status_code == 404
