"""Nothing of one workspace is visible in another: each route is tested for it, and a new one must be."""

import json
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio

from app.wiring import Services
from tests.conftest import WITHOUT_TLS
from tests.interfaces.http.calls import get, listed, patch, post
from tests.recall.cues.review.test_review import AGAIN, COLUMN, tended

PRIVATE = "The zebra protocol was judged and failed."
OBSERVATION = json.dumps({"title": "Zebra", "narrative": PRIVATE})
OURS = {"kind": "note", "body": PRIVATE, "tags": ["ours"]}
Asking = Callable[[httpx.AsyncClient, dict[str, Any]], Awaitable[httpx.Response]]

SESSION = {"id": "zebra-session", "messages": [{"role": "user", "text": PRIVATE}]}
CUE = {"kind": "correction", "trigger": "feeding the zebra", "lesson": "Give the zebra hay only."}
LEARNT = {"kind": "correction", "when": "feeding it", "lesson": "Give it no sugar.", "severity": "low"}
ROUTES: dict[tuple[str, str], Asking] = {
    ("GET", "/api/memories"): lambda client, _: client.get("/api/memories"),
    ("GET", "/api/memories/{memory_id}"): lambda client, known: client.get(f"/api/memories/{known['id']}"),
    ("GET", "/api/memories/facets"): lambda client, _: client.get("/api/memories/facets"),
    ("GET", "/api/memories/{memory_id}/around"): lambda client, known: client.get(
        f"/api/memories/{known['id']}/around"
    ),
    ("GET", "/api/status"): lambda client, _: client.get("/api/status"),
    ("GET", "/api/ingestions"): lambda client, _: client.get("/api/ingestions"),
    ("GET", "/api/sources"): lambda client, _: client.get("/api/sources"),
    ("GET", "/api/recalls"): lambda client, _: client.get("/api/recalls"),
    ("GET", "/api/recalls:trends"): lambda client, _: client.get("/api/recalls:trends"),
    ("GET", "/api/recalls/{recall_id}"): lambda client, known: client.get(f"/api/recalls/{known['recall_id']}"),
    ("POST", "/api/search"): lambda client, _: client.post("/api/search", json={"query": "zebra protocol"}),
    ("POST", "/api/history"): lambda client, _: client.post("/api/history", json={"query": "zebra protocol"}),
    ("POST", "/api/memories"): lambda client, _: client.post("/api/memories", json={"kind": "note", "body": PRIVATE}),
    ("POST", "/api/memories:bulk"): lambda client, _: client.post(
        "/api/memories:bulk", content=json.dumps({"kind": "note", "body": PRIVATE}).encode()
    ),
    ("GET", "/api/runs"): lambda client, _: client.get("/api/runs"),
    ("GET", "/api/runs/{run_id}"): lambda client, _: client.get("/api/runs/zebra-run"),
    ("PATCH", "/api/runs/{run_id}"): lambda client, _: client.patch("/api/runs/zebra-run", json={"verdict": "x"}),
    ("POST", "/api/runs"): lambda client, _: client.post("/api/runs", json={"run_id": "zebra-run"}),
    ("POST", "/api/observations"): lambda client, _: client.post(
        "/api/observations?wait=true", json={"task": "zebra", "output": PRIVATE}
    ),
    ("GET", "/api/observations/{observation_id}"): lambda client, known: client.get(
        f"/api/observations/{known['observation_id']}"
    ),
    ("POST", "/api/memories/{memory_id}/feedback"): lambda client, known: client.post(
        f"/api/memories/{known['id']}/feedback", json={"rating": 1}
    ),
    ("GET", "/api/memories/{memory_id}/feedback"): lambda client, known: client.get(
        f"/api/memories/{known['id']}/feedback"
    ),
    ("DELETE", "/api/feedback/{feedback_id}"): lambda client, known: client.delete(
        f"/api/feedback/{known['feedback_id']}"
    ),
    ("POST", "/api/forget"): lambda client, _: client.post("/api/forget", json={"phrase": "zebra", "yes": True}),
    ("GET", "/api/feedback/export"): lambda client, _: client.get("/api/feedback/export"),
    ("GET", "/api/memories/review-counts"): lambda client, _: client.get("/api/memories/review-counts"),
    ("GET", "/api/memories/{memory_id}/same"): lambda client, known: client.get(f"/api/memories/{known['id']}/same"),
    ("PATCH", "/api/memories"): lambda client, known: client.patch(
        "/api/memories", json={"ids": [known["id"]], "state": "deleted"}
    ),
    ("POST", "/api/links"): lambda client, known: client.post(
        "/api/links",
        json={"links": [{"from_id": known["id"], "to_id": known["deleted_id"], "relation": "supersedes"}]},
    ),
    ("POST", "/api/novelty"): lambda client, _: client.post("/api/novelty", json={"results": [PRIVATE]}),
    ("GET", "/api/graph"): lambda client, _: client.get("/api/graph"),
    ("GET", "/api/cases"): lambda client, _: client.get("/api/cases"),
    ("GET", "/api/cases/{case}"): lambda client, _: client.get("/api/cases/zebra"),
    ("POST", "/api/cues"): lambda client, _: client.post("/api/cues", json=CUE),
    ("POST", "/api/cues:learn"): lambda client, _: client.post("/api/cues:learn", json=LEARNT),
    ("GET", "/api/cues"): lambda client, _: client.get("/api/cues"),
    ("GET", "/api/cues/{cue_id}"): lambda client, known: client.get(f"/api/cues/{known['cue_id']}"),
    ("PATCH", "/api/cues/{cue_id}"): lambda client, known: client.patch(
        f"/api/cues/{known['cue_id']}", json={"lesson": "ours"}
    ),
    ("POST", "/api/cues:merge"): lambda client, known: client.post(
        "/api/cues:merge", json={"ids": [known["id"]], "into": known["cue_id"]}
    ),
    ("POST", "/api/cues:tend"): lambda client, _: client.post("/api/cues:tend"),
    ("GET", "/api/proposals"): lambda client, _: client.get("/api/proposals", params={"state": "accepted"}),
    ("PATCH", "/api/proposals/{proposal_id}"): lambda client, known: client.patch(
        f"/api/proposals/{known['proposal_id']}", json={"state": "declined"}
    ),
    ("POST", "/api/probes:run"): lambda client, _: client.post("/api/probes:run"),
    ("GET", "/api/why"): lambda client, _: client.get("/api/why", params={"subject": "feeding the animals"}),
    ("GET", "/api/users"): lambda client, _: client.get("/api/users"),
    ("DELETE", "/api/users/{user}"): lambda client, _: client.delete("/api/users/zebra"),
    ("GET", "/api/sessions"): lambda client, _: client.get("/api/sessions"),
    ("POST", "/api/sessions"): lambda client, _: client.post("/api/sessions", json=SESSION),
    ("GET", "/api/sessions/{session_id}"): lambda client, _: client.get("/api/sessions/zebra-session"),
    ("POST", "/api/sessions/{session_id}/messages"): lambda client, _: client.post(
        "/api/sessions/zebra-session/messages", json={"messages": SESSION["messages"]}
    ),
    ("GET", "/api/sessions/{session_id}/messages"): lambda client, _: client.get(
        "/api/sessions/zebra-session/messages"
    ),
    ("DELETE", "/api/sessions/{session_id}"): lambda client, _: client.delete("/api/sessions/zebra-session"),
    ("POST", "/api/contexts"): lambda client, _: client.post("/api/contexts", json={"observation": "the protocol"}),
    ("GET", "/api/contexts"): lambda client, _: client.get("/api/contexts"),
    ("GET", "/api/contexts/{context_id}"): lambda client, known: client.get(f"/api/contexts/{known['context_id']}"),
    ("GET", "/api/effect"): lambda client, _: client.get("/api/effect"),
    ("POST", "/api/check"): lambda client, _: client.post("/api/check", json={"plan": "feed the animal"}),
    ("POST", "/api/activate"): lambda client, _: client.post("/api/activate", json={"plan": "feed the animal"}),
    ("POST", "/api/activations/{activation_id}/outcome"): lambda client, known: client.post(
        f"/api/activations/{known['activation_id']}/outcome", json={}
    ),
    ("GET", "/api/settings"): lambda client, _: client.get("/api/settings"),
    ("PATCH", "/api/settings"): lambda client, _: client.patch(
        "/api/settings", json={"action_types": {"feeding": ["feed it"]}}
    ),
    ("POST", "/api/contexts:compare"): lambda client, _: client.post("/api/contexts:compare", json={"first": {}}),
    ("GET", "/api/audit"): lambda client, _: client.get("/api/audit"),
    ("POST", "/api/reports"): lambda client, _: client.post(
        "/api/reports", json={"path": "zebra.md", "content": PRIVATE}
    ),
    ("POST", "/api/reports:batch"): lambda client, _: client.post(
        "/api/reports:batch",
        json={"files": [{"path": "/zebra.md", "shown": "zebra.md", "content": b64encode(PRIVATE.encode()).decode()}]},
    ),
    ("POST", "/api/imports"): lambda client, _: client.post(
        "/api/imports",
        json={"name": "observations.jsonl", "content": b64encode(OBSERVATION.encode()).decode()},
    ),
}
"""Every route that touches a workspace, and how a stranger would ask it for another's."""

# What keys may see and do is tested in tests/keys.
KEYS = {("GET", "/api/keys"), ("POST", "/api/keys"), ("DELETE", "/api/keys/{key_id}"),
        ("POST", "/api/keys/{key_id}/rotate"), ("PUT", "/api/keys/{key_id}/limits")}  # fmt: skip
WITHOUT_WORKSPACE = KEYS | {
    ("GET", "/health"), ("GET", "/ready"), ("GET", "/metrics"), ("GET", "/api/workspaces")
}  # fmt: skip
WITHOUT_WORKSPACE |= {("POST", "/api/contexts:compile")}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def ours(server: str, services: Services) -> AsyncIterator[dict[str, str]]:
    """Ids of what another workspace has, which is still there at the end."""
    name = {"X-Workspace": f"test-{uuid4().hex[:12]}"}
    async with httpx.AsyncClient(base_url=server, headers=name, timeout=60, verify=WITHOUT_TLS) as client:
        memory_id = (await post(client, "/api/memories", OURS))["ids"][0]
        await post(client, "/api/reports", {"path": "zebra.md", "content": PRIVATE})
        await post(client, "/api/runs", {"run_id": "zebra-run", "task": PRIVATE, "output": PRIVATE, "final_score": 3})
        observed = await post(client, "/api/observations", {"task": "zebra", "output": PRIVATE})
        rated = await post(client, f"/api/memories/{memory_id}/feedback", {"rating": -1})
        gone = (await post(client, "/api/memories", {"kind": "note", "body": "Zebra, deleted."}))["ids"][0]
        await patch(client, "/api/memories", {"state": "deleted", "ids": [gone]})
        await post(client, "/api/sessions", SESSION)
        cue = await post(client, "/api/cues", CUE)
        fired = await post(client, "/api/activate", {"plan": "feed the zebra"})
        own = {"action_types": {"zoo": [PRIVATE]}}
        (await client.patch("/api/settings", json=own)).raise_for_status()
        context = await post(client, "/api/contexts", {"observation": "zebra protocol"})
        proposals = (await tended(client, services, COLUMN, AGAIN))["proposals"]
        recall = await post(client, "/api/search", {"query": "zebra protocol"})
        yield {
            "id": memory_id,
            "cue_id": cue["id"],
            "context_id": context["id"],
            "activation_id": fired["activation_id"],
            "observation_id": observed["observation_id"],
            "feedback_id": rated["rating"]["feedback_id"],
            "deleted_id": gone,
            "proposal_id": proposals[0]["id"],
            "recall_id": recall["recall_id"],
            **{f"hit {place}": hit["id"] for place, hit in enumerate(recall["hits"])},
        }
        found = await get(client, f"/api/memories/{memory_id}")
        assert (found["body"], found["tags"], found["quality"]) == (PRIVATE, ["ours"], -1)
        assert gone in {memory["id"] for memory in await listed(client, "deleted")}
        assert (await get(client, "/api/sessions/zebra-session"))["id"] == SESSION["id"]


@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
async def test_a_stranger_sees_nothing(client: httpx.AsyncClient, ours: dict[str, str], route: tuple[str, str]) -> None:
    answer = await ROUTES[route](client, ours)
    assert "hit 0" in ours
    assert answer.status_code in {200, 404}
    if route == ("PATCH", "/api/memories"):
        assert (answer.json()["changed"], len(answer.json()["missing"])) == ([], 1)
        return
    assert answer.status_code == 404 or not any(identity in answer.text for identity in ours.values())
    if route[0] == "GET" or route[1] in {"/api/search", "/api/history", "/api/contexts"}:
        assert answer.status_code == 404 or "zebra" not in answer.text.lower()
    elif route[1] == "/api/novelty":
        assert answer.json()["novelty"] == 1
    elif answer.status_code == 200:
        # What a stranger stores is new: the same text of another workspace is not theirs.
        assert answer.json().get("stored", 1) == 1


async def test_a_stranger_changes_nothing(client: httpx.AsyncClient, ours: dict[str, str]) -> None:
    for name, change in (("deleted_id", {"state": "live"}), ("id", {"state": "quarantined"}), ("id", {"tag": "theirs"}),
                         ("id", {"untag": "ours"})):  # fmt: skip
        answer = await patch(client, "/api/memories", {"ids": [ours[name]], **change})
        assert answer == {"changed": [], "missing": [ours[name]]}
    replaced = {"ids": [ours["deleted_id"]], "by": ours["id"], "state": "superseded"}
    assert (await client.patch("/api/memories", json=replaced)).status_code == 404
    link = {"from_id": ours["id"], "to_id": ours["observation_id"], "relation": "derived_from"}
    assert (await client.post("/api/links", json={"remove": link})).json()["removed"] == 0
    undone = await client.patch(f"/api/proposals/{ours['proposal_id']}", json={"state": "undone"})
    assert undone.status_code == 404
    for state in ("suspect", "prune", "quarantined", "deleted", "superseded"):
        assert await listed(client, state) == []


async def test_every_route_is_tested_for_it(client: httpx.AsyncClient) -> None:
    paths = (await client.get("/schema/openapi.json")).json()["paths"]
    routes = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert routes == set(ROUTES) | WITHOUT_WORKSPACE
