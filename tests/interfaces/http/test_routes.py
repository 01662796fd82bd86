"""Every route, over a real socket."""

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, cast

import httpx
import pytest

from app.errors import ConfigurationError
from app.foundation.models.protocols import EmbeddingProvider
from app.interfaces.http.admission import Admission, Frame
from app.interfaces.http.context import ApplicationContext, Metrics
from app.interfaces.http.serving.server import bound_socket
from app.settings import Settings

NOTE = {"kind": "note", "title": "scout", "body": "The scout returned zero actors and nobody escalated."}
LOG = {"kind": "session", "uri": "log/1", "title": "Log 1"}


async def stored(client: httpx.AsyncClient, *notes: dict[str, Any]) -> list[str]:
    body = "\n".join(json.dumps(note) for note in notes)
    answer = await client.post("/api/memories:bulk?wait=true", content=body.encode())
    assert answer.status_code == 200, answer.text
    ids: list[str] = answer.json()["ids"]
    return ids


async def test_one_memory_is_stored_once(client: httpx.AsyncClient) -> None:
    first = (await client.post("/api/memories", json=NOTE)).json()
    again = (await client.post("/api/memories", json=NOTE)).json()
    assert (first["stored"], again["stored"], again["unchanged"]) == (1, 0, 1)
    assert first["ids"] == again["ids"]
    shown = (await client.get(f"/api/memories/{first['ids'][0]}")).json()
    assert (shown["body"], shown["kind"], shown["source"]) == (NOTE["body"], "note", None)


async def test_waiting_for_vectors_gives_a_hybrid_answer(client: httpx.AsyncClient) -> None:
    answer = (await client.post("/api/memories?wait=true", json=NOTE)).json()
    assert answer["embedded"] == 1
    found = (await client.post("/api/search", json={"query": "scout found no actors", "k": 3})).json()
    assert (found["mode"], found["degraded"]) == ("hybrid", [])
    hit = found["hits"][0]
    assert (hit["title"], hit["body"]) == ("scout", NOTE["body"])
    assert hit["explain"]["similarity"] > 0.4


async def test_lines_are_taken_one_by_one(client: httpx.AsyncClient) -> None:
    lines = [
        json.dumps({"kind": "message", "body": "one", "source": LOG, "ordinal": 0}),
        "",
        "not json",
        json.dumps({"kind": "message", "body": "two", "source": LOG, "ordinal": 1, "extra": 1}),
        json.dumps({"kind": "message", "body": " ", "source": LOG, "ordinal": 2}),
        "[" * 100_000,
        json.dumps({"kind": "note", "body": "x" * 1_000_001}),
        json.dumps({"kind": "message", "body": "last, without a line's end", "source": LOG, "ordinal": 3}),
    ]
    answer = (await client.post("/api/memories:bulk", content="\r\n".join(lines).encode())).json()
    assert answer["stored"] == 2
    assert [item["line"] for item in answer["rejected"]] == [3, 4, 5, 6, 7]
    assert "extra" in answer["rejected"][1]["reason"]
    assert [identity is not None for identity in answer["ids"]] == [True, False, False, False, False, False, True]


async def test_a_memory_may_bring_its_vector(client: httpx.AsyncClient, provider: EmbeddingProvider) -> None:
    vectors = (await provider.embed_documents(["Lesson\nalpha beta", "Lesson\ngamma delta"])).astype("<f4")
    given = [
        {"model": provider.model_id, "vector": b64encode((7 * vectors[0]).tobytes()).decode()},
        {"model": provider.model_id, "vector": vectors[1].tolist()},
        {"model": "another", "vector": vectors[0].tolist()},
        {"model": provider.model_id, "vector": [1.0, 2.0]},
        {"model": provider.model_id, "vector": [0.0] * provider.dimension},
        {"model": provider.model_id, "vector": "no base64!"},
    ]
    bodies = ["alpha beta", "gamma delta", "c", "d", "e", "f"]
    lines = [
        json.dumps({"kind": "note", "title": "Lesson", "body": body, "embedding": embedding})
        for body, embedding in zip(bodies, given, strict=True)
    ]
    answer = (await client.post("/api/memories:bulk", content="\n".join(lines).encode())).json()
    assert answer["stored"] == 2
    assert [item["line"] for item in answer["rejected"]] == [3, 4, 5, 6]
    assert provider.model_id in answer["rejected"][0]["reason"]
    assert "has 2 numbers" in answer["rejected"][1]["reason"]
    found = (await client.post("/api/search", json={"query": "Lesson\nalpha beta", "k": 2})).json()
    assert (found["mode"], found["degraded"]) == ("hybrid", [])
    # The vectors of queries are approximate: their cosine to the exact ones is at least 0.994.
    assert [hit["explain"]["similarity"] for hit in found["hits"]][:1] == [pytest.approx(1, abs=0.01)]


async def test_ten_thousand_lines_in_one_call(client: httpx.AsyncClient) -> None:
    async def lines() -> AsyncIterator[bytes]:
        for number in range(10_000):
            yield json.dumps({"kind": "note", "body": f"finding number {number}"}).encode() + b"\n"

    answer = (await client.post("/api/memories:bulk", content=lines())).json()
    assert (answer["stored"], len(answer["ids"]), answer["rejected"]) == (10_000, 10_000, [])


async def test_history_is_the_same_byte_for_byte(client: httpx.AsyncClient) -> None:
    await stored(client, NOTE, {**NOTE, "title": "judge", "body": "The judge took points for weak sources."})
    asked = {"query": "scout actors and weak sources", "agent": "director", "run_id": "run-1", "budget_tokens": 120}
    first, second = [(await client.post("/api/history", json=asked)).json() for _ in range(2)]
    assert first["markdown"] == second["markdown"]
    assert first["markdown"].startswith("## Relevant History\n")
    assert 0 < first["tokens"] <= 120
    assert len(first["hits"]) == 2
    recall = (await client.get(f"/api/recalls/{first['recall_id']}")).json()
    assert (recall["purpose"], recall["agent"], recall["run_id"]) == ("history", "director", "run-1")
    assert [hit["id"] for hit in recall["hits"]] == [hit["id"] for hit in first["hits"]]


async def test_nothing_relevant_is_an_empty_string(client: httpx.AsyncClient) -> None:
    empty = (await client.post("/api/history", json={"query": "anything at all"})).json()
    await stored(client, NOTE)
    unrelated = (await client.post("/api/history", json={"query": "quantum chromodynamics on a lattice"})).json()
    assert (empty["markdown"], unrelated["markdown"]) == ("", "")
    assert (empty["tokens"], unrelated["hits"]) == (0, [])


async def test_pages_follow_their_cursor(client: httpx.AsyncClient) -> None:
    await stored(client, *({"kind": "note", "body": f"note {number}"} for number in range(5)))
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        parameters: dict[str, Any] = {"limit": 2, **({"cursor": cursor} if cursor else {})}
        page = (await client.get("/api/memories", params=parameters)).json()
        seen += [memory["body"] for memory in page["memories"]]
        cursor = page["next"]
    assert sorted(seen) == [f"note {number}" for number in range(5)]


async def test_a_report_is_taken_in_by_its_content(client: httpx.AsyncClient) -> None:
    report = {"path": "v6/report.md", "content": "# V6\n\nThe scout returned zero actors and nobody escalated."}
    first, again = [(await client.post("/api/reports", json=report)).json() for _ in range(2)]
    assert (first["status"], first["chunks"], again["status"]) == ("new", 1, "unchanged")
    source = (await client.get("/api/sources")).json()["sources"][0]
    assert (source["kind"], source["uri"], source["memories"]) == ("report", "v6/report.md", 1)
    found = (await client.post("/api/search", json={"query": "zero actors", "filters": {"source": "v6/*.md"}})).json()
    assert found["hits"][0]["source"]["uri"] == "v6/report.md"


async def test_a_report_that_cannot_be_taken_in_is_answered_with_its_reason(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def send(path: str, content: str) -> dict[str, Any]:
        return dict((await client.post("/api/reports", json={"path": path, "content": content})).json())

    assert (await send("kiln/glaze.txt", "Cobalt at 0.4 percent runs on vertical walls."))["status"] == "new"
    left_out = await send("kiln/kiln.markdown", "# Kiln log\n")
    assert (left_out["status"], left_out["reason"][:8]) == ("left_out", "is empty")
    refused = await send("kiln/samples.csv", "sample,result\n")
    assert "names a file that is no report: the suffixes are .md, .markdown, .txt" in refused["detail"]

    def fail(*_: object, **__: object) -> None:
        raise TypeError("unhashable type: 'dict'")

    monkeypatch.setattr("app.intake.reports.ingest.prepare", fail)
    failed = await send("v6/report.md", "# V6\n\nThe scout returned zero actors.")
    assert failed["status"] == 400
    assert failed["detail"].startswith("content: could not be taken in (TypeError: unhashable type")


BAD = [
    ("/api/search", {"query": ""}, "query"),
    ("/api/search", {"query": "x" * 300_001}, "query"),
    ("/api/search", {"query": "a\0b"}, "query"),
    ("/api/search", {"query": "x", "k": 0}, "k"),
    ("/api/search", {"query": "x", "k": 10_000}, "k"),
    ("/api/search", {"query": "x", "k": "ten"}, "k"),
    ("/api/search", {"query": "x", "unknown": 1}, "unknown"),
    ("/api/search", {"query": 7}, "query"),
    ("/api/search", {"query": "x", "filters": {"kinds": ["poem"]}}, "kinds"),
    ("/api/search", {"query": "x", "filters": {"since": "yesterday"}}, "since"),
    ("/api/search", {"query": "x", "preset": "best"}, "preset"),
    ("/api/search", {}, "query"),
    ("/api/history", {"query": "x", "budget_tokens": 0}, "budget_tokens"),
    ("/api/memories", {"kind": "note"}, "body"),
    ("/api/memories", {**NOTE, "final_score": 11}, "final_score"),
    ("/api/memories", {**NOTE, "ordinal": 10**30}, "ordinal"),
    ("/api/memories", {**NOTE, "occurred_at": "0001-01-01T00:00:00+14:00"}, "occurred_at"),
    ("/api/memories", {**NOTE, "metadata": {"deep": "\0"}}, "metadata.deep"),
    ("/api/reports", {"path": "../x.md", "content": "text"}, "path"),
    ("/api/reports", {"path": "x.json", "content": "{"}, "content"),
]


@pytest.mark.parametrize(("route", "body", "field"), BAD)
async def test_bad_input_is_a_problem_that_names_the_field(
    client: httpx.AsyncClient, route: str, body: dict[str, Any], field: str
) -> None:
    answer = await client.post(route, json=body)
    problem = answer.json()
    assert answer.status_code == 400
    assert answer.headers["content-type"].startswith("application/problem+json")
    assert field in json.dumps(problem)
    assert problem["request_id"] == answer.headers["x-request-id"]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b'{"query": "\xff"}', b"null", b"[" * 100_000, b'{"query": "\\ud800"}', b'{"query": NaN}', b"\0"],
)
async def test_garbage_is_refused(client: httpx.AsyncClient, content: bytes) -> None:
    for route in ("/api/search", "/api/history", "/api/memories", "/api/reports"):
        answer = await client.post(route, content=content, headers={"content-type": "application/json"})
        assert answer.status_code == 400, (route, answer.text)
        assert answer.json()["status"] == 400


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("DELETE", "/api/search", 405),
        ("GET", "/api/memories/not-a-uuid", 404),
        ("GET", "/api/memories/00000000-0000-7000-8000-000000000000", 404),
        ("GET", "/api/recalls/00000000-0000-7000-8000-000000000000", 404),
        ("GET", "/api/memories?limit=0", 400),
        ("GET", "/api/memories?cursor=nonsense", 400),
        ("GET", "/api/memories?kind=poem", 400),
    ],
)
async def test_wrong_paths_are_problems_too(client: httpx.AsyncClient, method: str, path: str, status: int) -> None:
    answer = await client.request(method, path)
    assert answer.status_code == status
    assert answer.headers["content-type"].startswith("application/problem+json")


async def test_a_misspelt_filter_is_refused(client: httpx.AsyncClient) -> None:
    answer = await client.get("/api/audit?sicne=2026-01-01&limit=5")
    (fault,) = answer.json()["errors"]
    assert (answer.status_code, fault["field"]) == (400, "sicne")
    assert "since" in fault["message"]
    assert (await client.delete("/api/sessions/none?force=true")).status_code == 400
    assert (await client.get("/api/audit?limit=5")).status_code == 200


async def test_all_mistakes_of_a_page_are_told_at_once(client: httpx.AsyncClient) -> None:
    answer = await client.get("/api/memories?kind=poem&min_quality=x&sort=colour&order=up&limit=0")
    told = [error["field"] for error in answer.json()["errors"]]
    assert told == ["kind", "min_quality", "sort", "order", "limit"]


@pytest.mark.parametrize("name", ["a b", "ü", "x" * 65, "../x"])
async def test_a_workspace_may_not_be_called_that(server: str, name: str) -> None:
    async with httpx.AsyncClient(base_url=server) as client:
        answer = await client.get("/api/memories", headers=[(b"X-Workspace", name.encode())])
    assert answer.status_code == 400
    assert "X-Workspace" in answer.text


async def test_a_request_id_is_kept_or_made(client: httpx.AsyncClient) -> None:
    given = await client.get("/health", headers={"X-Request-ID": "run-7.step-2"})
    assert given.headers["x-request-id"] == "run-7.step-2"
    made = [(await client.get("/health", headers={"X-Request-ID": "a b; c"})).headers["x-request-id"] for _ in "12"]
    assert made[0] != made[1]


async def test_many_at_once_are_all_answered(client: httpx.AsyncClient) -> None:
    await stored(client, NOTE)
    asked = [client.post("/api/history", json={"query": f"scout actors {number}"}) for number in range(40)]
    assert {answer.status_code for answer in await asyncio.gather(*asked)} == {200}


async def test_the_key_is_asked_for_everywhere_but_health() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"in"})

    context = ApplicationContext(services=None, metrics=Metrics())
    admission = Admission(lambda: context.keys, Settings(api_key="secret", admin_key="admin"))
    transport = httpx.ASGITransport(app=cast("Any", Frame(app, admission=admission, metrics=context.metrics)))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        for path in ("/api/search", "/ready", "/metrics", "/schema"):
            for token, challenge, reason in (
                ("", "Bearer", "asks for its API key"),
                ("Bearer", "Bearer", "asks for its API key"),
                ("secret", "Bearer", "asks for its API key"),
                ("Bearer wrong", 'Bearer error="invalid_token"', "wrong, revoked or expired"),
            ):
                answer = await client.get(path, headers={"authorization": token})
                assert (answer.status_code, answer.headers["www-authenticate"]) == (401, challenge)
                assert answer.json()["status"] == 401
                assert reason in answer.json()["detail"]
            for scheme in ("Bearer", "bearer", "BEARER"):
                assert (await client.get(path, headers={"authorization": f"{scheme} secret"})).text == "in"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost:8000"}, 200),
        ({"host": "[::1]:8000", "origin": "http://[::1]:8000"}, 200),
        ({"host": "127.0.0.1:8000", "origin": "https://evil.example"}, 403),
        ({"host": "127.0.0.1:8000", "origin": "null"}, 403),
        ({"host": "127.0.0.1:8000", "origin": "http://127.0.0.1:9000"}, 403),
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "none"}, 200),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"host": "evil.example:8000"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
    ],
)
async def test_without_a_key_no_page_of_another_site_gets_in(
    client: httpx.AsyncClient, headers: dict[str, str], status: int
) -> None:
    answer = await client.post("/api/search", json={"query": "anything"}, headers=headers)
    assert answer.status_code == status
    if status == 403:
        assert "PRIORS_API_KEY" in answer.json()["detail"]
        assert (await client.get("/health")).status_code == 200


async def test_a_link_from_another_site_opens_the_panel_alone(client: httpx.AsyncClient) -> None:
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert (await client.get("/runs", headers=headers)).status_code == 200
    assert (await client.get("/api/runs", headers=headers)).status_code == 403


@pytest.mark.parametrize("path", ["/api/memories", "/api/memories/none", "/metrics", "/health", "/schema"])
async def test_answers_are_kept_by_nobody_and_read_by_no_other_site(client: httpx.AsyncClient, path: str) -> None:
    headers = (await client.get(path)).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"
    foreign = (await client.get("/api/memories", headers={"host": "evil.example"})).headers
    assert foreign["x-content-type-options"] == "nosniff"


async def test_the_metrics_name_one_character_set(client: httpx.AsyncClient) -> None:
    answer = await client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"


async def test_the_answers_of_observations_are_documented(client: httpx.AsyncClient) -> None:
    outcome = {"output": "The scout verified 12 producers. Three lost their licence in 2025.", "run_id": "documented"}
    paths = (await client.get("/schema/openapi.json")).json()["paths"]
    for wait, status in ((False, 202), (True, 200)):
        answer = await client.post("/api/observations", json=outcome, params={"wait": wait})
        assert answer.status_code == status
        documented = paths["/api/observations"]["post"]["responses"][str(status)]["content"]["application/json"]
        assert documented["schema"]["$ref"].endswith("Recorded")
    for method, path in (("post", "/api/runs"), ("patch", "/api/runs/{run_id}")):
        assert {"200", "202"} <= paths[path][method]["responses"].keys()


def test_a_taken_port_is_said_in_one_line(settings: Settings) -> None:
    with bound_socket(settings) as taken, pytest.raises(ConfigurationError, match="PRIORS_PORT"):
        bound_socket(replace(settings, port=taken.getsockname()[1]))


def test_beyond_this_machine_a_key_is_needed(settings: Settings) -> None:
    with pytest.raises(ConfigurationError, match="PRIORS_API_KEY"):
        bound_socket(replace(settings, host="0.0.0.0"))  # noqa: S104 - what is refused
