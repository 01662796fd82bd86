"""Nothing of one user is visible to another: each reading route and tool is asked, and users are dealt at random."""

import random
from typing import Any, get_args

import httpx
import pytest
import pytest_asyncio

from app.foundation.db.migrations import SCHEMA
from app.storage.memories.filters import State
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from tests.interfaces.http.calls import embed, get, patch, post
from tests.interfaces.http.test_isolation import ROUTES
from tests.interfaces.http.test_learning import SUSPECT

PRIVATE = "The zebra protocol was judged and failed: we feed the zebra hay only."
WITHOUT_USERS = {
    ("GET", "/api/settings"),
    ("GET", "/api/status"),
    ("GET", "/api/audit"),
    ("GET", "/api/ingestions"),
    ("GET", "/api/keys"),
    ("GET", "/api/users"),
}
"""Routes that tell of the whole workspace, to people."""
ASKED: dict[str, dict[str, Any]] = {
    "/api/search": {"query": "zebra protocol"},
    "/api/history": {"query": "zebra protocol", "activate": True},
    "/api/contexts": {"observation": "feed the zebra", "session": "zebra-session"},
    "/api/activate": {"plan": "feed the zebra", "files": ["zoo/zebra.py"]},
    "/api/novelty": {"results": [PRIVATE]},
}
TOOLS: dict[str, dict[str, Any]] = {
    "relevant_history": {"query": "zebra protocol"},
    "before_you_act": {"plan": "feed the zebra"},
    "recall": {"query": "zebra protocol"},
    "why": {"subject": "feeding the zebra"},
    "context": {"observation": "feed the zebra", "session": "zebra-session"},
}


@pytest_asyncio.fixture
async def hers(client: httpx.AsyncClient, services: Services) -> dict[str, str]:
    """The ids of all that is Alice's."""
    of_alice = {"user": "alice"}
    stored = await post(client, "/api/memories", {"kind": "note", "body": PRIVATE, "tags": ["zebra"], **of_alice})
    said = [
        {"role": "user", "text": "feed the zebra"},
        {
            "role": "assistant",
            "text": "I feed it meat.",
            "tools": [{"name": "Edit", "input": {"path": "zoo/zebra.py"}}],
        },
        {"role": "user", "text": "no, never feed the zebra meat, always hay"},
    ]
    talk = {"messages": said, **of_alice}
    await post(client, "/api/sessions/zebra-session/messages?wait=true", talk)
    await post(client, "/api/runs", {"run_id": "zebra-run", "task": PRIVATE, "final_score": 3, **of_alice})
    observed = await post(client, "/api/observations?wait=true", {"task": "zebra", "output": PRIVATE, **of_alice})
    cue = {"kind": "decision", "trigger": "feeding the zebra", "lesson": "Give the zebra hay only."}
    made = await post(client, "/api/cues?user=alice", cue)
    rated = await post(client, f"/api/memories/{stored['ids'][0]}/feedback?user=alice", {"rating": -1})
    await embed(client, services)
    answers = {path: await post(client, path, {**body, **of_alice}) for path, body in ASKED.items()}
    assert answers["/api/search"]["hits"]
    assert answers["/api/activate"]["cues"]
    return {
        "id": stored["ids"][0],
        "deleted_id": stored["ids"][0],
        "observation_id": observed["observation_id"],
        "cue_id": made["id"],
        "feedback_id": rated["rating"]["feedback_id"],
        "recall_id": answers["/api/search"]["recall_id"],
        "context_id": answers["/api/contexts"]["id"],
        "activation_id": answers["/api/activate"]["activation_id"],
    }


async def called(client: httpx.AsyncClient, tool: str, **arguments: object) -> httpx.Response:
    call = {"name": tool, "arguments": arguments}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
    return await client.post("/mcp", json=request, headers=headers)


def tells_nothing(answer: httpx.Response, hers: dict[str, str], asked: object) -> None:
    text = answer.text.lower()
    assert answer.status_code in {200, 204, 400, 404}, (asked, answer.text)
    told = [identity for identity in hers.values() if identity in text and answer.status_code == 200]
    assert not told, (asked, answer.text)
    assert answer.status_code != 200 or "hay" not in text, (asked, answer.text)


async def test_nobody_reads_what_is_anothers(client: httpx.AsyncClient, hers: dict[str, str]) -> None:
    paths = (await get(client, "/schema/openapi.json"))["paths"]
    bare = set()
    for user in ("bob", ""):
        for (method, path), ask in ROUTES.items():
            if method != "GET":
                continue
            if not any(one["name"] == "user" for one in paths[path]["get"].get("parameters", ())):
                bare.add((method, path))
                continue
            client.params = httpx.QueryParams(user=user)
            tells_nothing(await ask(client, hers), hers, (user, path))
        client.params = httpx.QueryParams()
        for path, body in ASKED.items():
            tells_nothing(await client.post(path, json={**body, "user": user}), hers, (user, path))
        for name, arguments in TOOLS.items():
            tells_nothing(await called(client, name, **arguments, user=user), hers, (user, name))
    assert bare <= WITHOUT_USERS, bare - WITHOUT_USERS
    for name, arguments in TOOLS.items():
        assert "hay" in (await called(client, name, **arguments, user="alice")).text, name
    # Without a user, people see whose it is.
    assert (await get(client, f"/api/memories/{hers['id']}"))["user"] == "alice"
    assert (await get(client, "/api/why?user=alice&subject=feeding the zebra"))["known"]
    assert not (await get(client, "/api/why?subject=feeding the zebra"))["known"]


async def test_nobody_lists_what_is_anothers_in_any_state(client: httpx.AsyncClient, services: Services) -> None:
    bodies = {
        "live": "Live: the zebra eats hay.",
        "suspect": SUSPECT,
        "prune": "Two people rated the zebra protocol down.",
        "quarantined": "The zebra carries the keys of the stable.",
        "deleted": "The zebra has a stable in the north.",
        "superseded": "The zebra weighs 300 kilograms.",
    }
    ids = {}
    for state, body in bodies.items():
        (ids[state],) = (await post(client, "/api/memories", {"kind": "note", "body": body, "user": "alice"}))["ids"]
    for _ in range(2):
        await post(client, f"/api/memories/{ids['prune']}/feedback?user=alice", {"rating": -1})
    await patch(client, "/api/memories", {"ids": [ids["deleted"]], "state": "deleted"})
    await patch(client, "/api/memories", {"ids": [ids["superseded"]], "state": "superseded", "by": ids["live"]})
    workspace = await services.workspaces.resolve(client.headers["X-Workspace"])
    async with services.database.session(workspace) as session:
        retire = "UPDATE memories SET valid_until = now(), retired_as = 'quarantined' WHERE memory_id = %(id)s"
        await session.execute(retire, {"id": ids["quarantined"]})
    for state in get_args(State):
        found = {user: (await get(client, f"/api/memories?state={state}&user={user}")) for user in ("alice", "bob", "")}
        assert ids[state] in {memory["id"] for memory in found["alice"]["memories"]}, state
        assert [found[user]["total"] > 0 for user in found] == [True, False, False], state
        assert not [*found["bob"]["memories"], *found[""]["memories"]], state


async def test_nobody_deletes_what_is_anothers(client: httpx.AsyncClient, hers: dict[str, str]) -> None:
    client.params = httpx.QueryParams(user="bob")
    for (method, path), ask in ROUTES.items():
        if method == "DELETE" and path.startswith(("/api/memories", "/api/sessions", "/api/cues", "/api/feedback")):
            assert (await ask(client, hers)).status_code == 404, path
    changed = (await ROUTES["PATCH", "/api/memories"](client, hers)).json()["changed"]
    assert changed == []
    taken = await client.post("/api/runs", json={"run_id": "zebra-run", "user": "bob"})
    assert (taken.status_code, taken.json()["errors"][0]["field"]) == (400, "user")


async def test_a_user_is_destroyed_with_all_that_is_theirs(
    client: httpx.AsyncClient, services: Services, hers: dict[str, str]
) -> None:
    await post(client, "/api/memories", {"kind": "note", "body": PRIVATE, "user": "bob"})
    await post(client, "/api/memories", {"kind": "note", "body": "Nobody's giraffe."})
    users = (await get(client, "/api/users"))["users"]
    assert [(user["name"], user["sessions"]) for user in users] == [("alice", 1), ("bob", 0)]
    assert users[0]["turns"] == 3
    assert users[0]["recalls"] >= 2
    gone = (await client.delete("/api/users/alice")).json()
    assert {name: gone[name] for name in ("turns", "sessions", "ratings", "runs")} == {
        "turns": 3, "sessions": 1, "ratings": 1, "runs": 1,
    }  # fmt: skip
    assert gone["memories"] == users[0]["memories"]
    assert gone["cues"] >= 1
    assert gone["recalls"] == users[0]["recalls"]
    assert gone["activations"] >= 1
    assert gone["contexts"] == 1
    assert [user["name"] for user in (await get(client, "/api/users"))["users"]] == ["bob"]
    workspace = await services.workspaces.resolve(client.headers["X-Workspace"])
    async with services.database.session(workspace) as session:
        owned = await session.column(
            "SELECT table_name FROM information_schema.columns WHERE column_name = 'user_id'"
            " AND table_schema = current_schema()"
        )
        left = {name: await session.column(f"SELECT DISTINCT user_id FROM {name}") for name in owned}
        of_memories = {
            name: await session.value(f"SELECT count(*) FROM {name} WHERE memory_id = %(id)s", {"id": hers["id"]})
            for name in ("lexical", "embeddings", "feedback", "titles", "pending_links")
        }
    assert not any("alice" in users for users in left.values())
    assert set(of_memories.values()) == {0}
    assert (await client.delete("/api/users/alice")).json()["memories"] == 0


@pytest.mark.meaning
async def test_hits_are_the_askers_or_nobodys(client: httpx.AsyncClient, services: Services) -> None:
    dealt = random.Random(29)  # noqa: S311 - the same each time
    words = ["pump", "valve", "frost", "north", "plant", "audit", "score", "judge"]
    users = ["", "ann", "ben", "cat"]
    source = {"kind": "other", "uri": "log"}
    for ordinal in range(32):
        body = f"Note on the {' '.join(dealt.sample(words, 4))}."
        memory = {"kind": "note", "body": body, "source": source, "ordinal": ordinal, "tags": [dealt.choice("xy")]}
        await post(client, "/api/memories", {**memory, "user": dealt.choice(users)})
    await embed(client, services)
    for user in users:
        for filters in ({}, {"tags": ["x"]}, {"kinds": ["note"], "tags": ["y"]}):
            for preset in ("default", "classic", "closest"):
                asked = {"query": " ".join(dealt.sample(words, 3)), "k": 20, "user": user, "filters": filters}
                hits = (await post(client, "/api/search", {**asked, "preset": preset, "around": 2}))["hits"]
                seen = [hit["user"] for hit in hits] + [one["user"] for hit in hits for one in hit["around"]]
                assert hits
                assert set(seen) <= {user, ""}


@pytest.mark.usefixtures("hers")
async def test_an_erased_user_leaves_no_word_in_any_table(client: httpx.AsyncClient, services: Services) -> None:
    workspace = await services.workspaces.resolve(client.headers["X-Workspace"])
    assert await words_left(services, workspace) >= {"memories", "sources", "runs", "recalls", "contexts", "audit"}
    answer = await client.delete("/api/users/alice")
    assert answer.json()["memories"] > 1
    await services.statistics.refresh(services.database.across, workspace.workspace_id)
    assert await words_left(services, workspace) == set()
    (entry,) = (await get(client, "/api/audit?action=erase"))["entries"]
    assert (entry["object"], entry["operation"]) == ("user", "DELETE /api/users/{user}")


WORDS_LEFT = """
SELECT EXISTS (SELECT FROM {table} t WHERE t.workspace_id = %(workspace_id)s AND t::text ~* 'zebra|alice')
"""


async def words_left(services: Services, workspace: Workspace) -> set[str]:
    """Returns the tables that have a word of Alice's, whatever tables there are."""
    async with services.database.session(workspace) as session:
        return {
            table.name
            for table in SCHEMA.values()
            if table.of_workspace and await session.value(WORDS_LEFT.format(table=table.name))
        }
