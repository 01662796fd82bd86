"""Tags that are given to many memories at once, and taken back from just those that got them."""

from typing import Any

import httpx
import pytest

from app.storage.memories.memory import TAGS_LIMIT
from tests.interfaces.http.calls import get, patch, post

UNKNOWN = "0190f0f0-0000-7000-8000-000000000001"


async def note(client: httpx.AsyncClient, name: str, *tags: str) -> str:
    """The id of a note that has these tags."""
    memory: dict[str, Any] = {"kind": "note", "body": f"A lesson about {name}.", "tags": list(tags)}
    return str((await post(client, "/api/memories", memory))["ids"][0])


async def tags_of(client: httpx.AsyncClient, *ids: str) -> list[list[str]]:
    return [(await get(client, f"/api/memories/{memory_id}"))["tags"] for memory_id in ids]


async def test_an_undo_takes_the_tag_from_those_alone_that_got_it(client: httpx.AsyncClient) -> None:
    plain, had = await note(client, "pumps"), await note(client, "valves", "first", "kept")
    given = await patch(client, "/api/memories", {"ids": [plain, had, plain], "tag": "kept"})
    assert given == {"changed": [plain], "missing": [had]}
    assert await tags_of(client, plain, had) == [["kept"], ["first", "kept"]]
    listed = await get(client, "/api/memories?tag=kept")
    assert {memory["id"] for memory in listed["memories"]} == {plain, had}
    assert await patch(client, "/api/memories", {"ids": given["changed"], "untag": "kept"}) == {
        "changed": [plain],
        "missing": [],
    }
    assert await tags_of(client, plain, had) == [[], ["first", "kept"]]
    assert (await patch(client, "/api/memories", {"ids": [plain], "untag": "kept"}))["missing"] == [plain]


async def test_a_memory_in_the_trash_can_lose_a_tag(client: httpx.AsyncClient) -> None:
    memory_id = await note(client, "pumps")
    await patch(client, "/api/memories", {"ids": [memory_id], "tag": "odd"})
    await patch(client, "/api/memories", {"state": "deleted", "ids": [memory_id]})
    assert (await patch(client, "/api/memories", {"ids": [memory_id], "untag": "odd"}))["changed"] == [memory_id]


async def test_a_memory_full_of_tags_takes_no_more(client: httpx.AsyncClient) -> None:
    full = await note(client, "pumps", *(f"tag {number}" for number in range(TAGS_LIMIT)))
    assert (await patch(client, "/api/memories", {"ids": [full], "tag": "one more"}))["missing"] == [full]


async def test_a_tag_is_masked_like_those_that_come_with_a_memory(client: httpx.AsyncClient) -> None:
    memory_id, secret = await note(client, "keys"), "ghp_" + "a1B2c3D4e5F6" * 3
    await patch(client, "/api/memories", {"ids": [memory_id], "tag": secret})
    ((tag,),) = await tags_of(client, memory_id)
    assert secret not in tag
    assert (await patch(client, "/api/memories", {"ids": [memory_id], "untag": secret}))["changed"] == [memory_id]


@pytest.mark.parametrize("tag", ["", "  ", "x" * 101, "a\0b", None])
@pytest.mark.parametrize("verb", ["tag", "untag"])
async def test_a_tag_that_none_can_have_is_named(client: httpx.AsyncClient, tag: str | None, verb: str) -> None:
    answer = await client.patch("/api/memories", json={"ids": [await note(client, "pumps")], verb: tag})
    assert answer.status_code == 400
    assert "tag" in answer.text


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({}, "state"),
        ({"state": "deleted", "tag": "x"}, "state"),
        ({"tag": "x", "untag": "y"}, "state"),
        ({"state": "deleted", "by": UNKNOWN}, "by"),
        ({"state": "gone"}, "state"),
    ],
)
async def test_a_change_is_one(client: httpx.AsyncClient, change: dict[str, str], field: str) -> None:
    answer = await client.patch("/api/memories", json={"ids": [UNKNOWN], **change})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, field)
