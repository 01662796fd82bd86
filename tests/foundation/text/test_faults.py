"""Errors of a request: all of its faults at once, each with what would be taken instead."""

from collections.abc import Iterator

import httpx
import pytest
from priors_client import AsyncClient, NotFound, ProblemError

from app.foundation.text.data import MOST_FAULTS, faults_of
from app.storage.tenants.workspace import NAME_RULE

UNKNOWN = "00000000-0000-0000-0000-000000000000"


async def faults(client: httpx.AsyncClient, path: str, body: object) -> dict[str, str]:
    answer = await client.post(path, json=body)
    assert answer.status_code == 400, answer.text
    found = {item["field"]: item["message"] for item in answer.json()["errors"]}
    for field, message in found.items():
        assert answer.json()["detail"].count(f"{field}: {message}") == 1
    return found


async def test_all_faults_of_a_body_are_told_at_once(client: httpx.AsyncClient) -> None:
    body = {"kind": "dream", "boddy": "x", "tags": ["a", 5], "occurred_at": "yesterday", "source": {"kind": "report"}}
    found = await faults(client, "/api/memories", body)
    assert found["kind"] == "must be one of chunk, cue, message, note, observation; got 'dream'"
    assert found["boddy"].startswith("is no known field; did you mean `body`? The fields are kind, body, title")
    assert found["tags[1]"] == "must be a text; got 5"
    assert found["occurred_at"] == "must be a time, such as 2026-03-01T12:00:00Z; got 'yesterday'"
    assert found["source.uri"] == "is missing"


@pytest.mark.parametrize(
    ("path", "body", "field", "message"),
    [
        ("/api/search", {}, "query", "is missing"),
        ("/api/search", {"query": "x", "k": 1_000}, "k", "must be a whole number from 1 to 200; got 1000"),
        ("/api/search", {"query": ""}, "query", "is empty"),
        ("/api/history", {"task": "x"}, "task", "is no known field; did you mean `query`?"),
        ("/api/activate", {"plan": "x" * 20_001}, "plan", "has 20,001 characters; at most 20,000 are taken"),
        ("/api/runs", {"run_id": "r", "final_score": 11}, "final_score", "must be a number from 0 to 10; got 11"),
        ("/api/runs", {"run_id": 5}, "run_id", "must be a text; got 5"),
        ("/api/links", {"links": {}}, "links", "must be a list; got an object"),
        (
            "/api/cues",
            {"kind": "correction", "trigger": "a", "lesson": "b", "consequence": "grave"},
            "consequence",
            "must be a number from 0 to 1, or one of high, low, medium, severe; got 'grave'",
        ),
        (
            "/api/links",
            {"links": [{"from_id": UNKNOWN, "to_id": UNKNOWN, "relation": "Is Like"}]},
            "links[0].relation",
            "must have the form ^[a-z][a-z0-9_]{0,39}$; got 'Is Like'",
        ),
    ],
)
async def test_a_fault_says_what_would_be_taken(
    client: httpx.AsyncClient, path: str, body: object, field: str, message: str
) -> None:
    assert (await faults(client, path, body))[field].startswith(message)


def test_the_faults_of_a_long_list_are_found_as_they_are_told() -> None:
    seen = 0

    class Counted(list[object]):
        def __iter__(self) -> Iterator[object]:
            nonlocal seen
            for item in super().__iter__():
                seen += 1
                yield item

    found = faults_of(Counted([5] * 10_000), list[str], "refused")
    assert (len(found), seen) == (MOST_FAULTS, MOST_FAULTS)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (
            "graph?kind=dream&limit=-1",
            {
                "kind": "must be one of chunk, cue, message, note, observation; got 'dream'",
                "limit": "must be a whole number from 1 to 4,000; got '-1'",
            },
        ),
        (
            "memories?kind=note&kind=dream&since=tomorrow&limit=0&min_score=low",
            {
                "kind": "must be one of chunk, cue, message, note, observation; got 'dream'",
                "since": "must be a time, such as 2026-03-01T12:00:00Z; got 'tomorrow'",
                "limit": "must be a whole number from 1 to 200; got '0'",
                "min_score": "must be a number; got 'low'",
            },
        ),
        ("cues?state=gone", {"state": "must be one of active, proposed, retired, superseded; got 'gone'"}),
        ("memories?cursor=" + "x" * 201, {"cursor": "is not one that a page gave; leave it out for the first page"}),
        ("cues?action_type=" + "x" * 201, {"action_type": "has 201 characters; at most 200 are taken"}),
    ],
)
async def test_a_parameter_says_what_would_be_taken(
    client: httpx.AsyncClient, asked: str, told: dict[str, str]
) -> None:
    answer = await client.get(f"/api/{asked}")
    assert {item["field"]: item["message"] for item in answer.json()["errors"]} == told


async def test_a_wrong_name_of_a_workspace_says_what_a_name_is(client: httpx.AsyncClient) -> None:
    answer = await client.get("/api/memories", headers={"X-Workspace": "no such/name"})
    assert answer.status_code == 400
    assert answer.json()["detail"] == f"X-Workspace: {NAME_RULE}"


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"", "the body is empty; the route takes JSON"),
        (b'{"query":', "the body cannot be read as JSON: Input data was truncated"),
        (b"query=tea", "the body cannot be read as JSON: JSON is malformed: invalid character (byte 0)"),
    ],
)
async def test_a_body_that_is_no_json_is_told(client: httpx.AsyncClient, body: bytes, detail: str) -> None:
    answer = await client.post("/api/history", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["detail"]) == (400, detail)


async def test_a_line_of_many_memories_tells_all_its_faults(client: httpx.AsyncClient) -> None:
    answer = await client.post("/api/memories:bulk", content=b'{"kind": "dream", "mood": "good"}\n')
    reason = answer.json()["rejected"][0]["reason"]
    assert "kind: must be one of" in reason
    assert "mood: is no known field" in reason


async def test_a_missing_thing_is_named(client: httpx.AsyncClient) -> None:
    for path, named in (("/api/runs/never", "'never'"), ("/api/memories/no-id", "/api/memories/no-id")):
        answer = await client.get(path)
        assert (answer.status_code, named in answer.json()["detail"]) == (404, True), answer.text


async def test_the_client_says_each_thing_once(server: str, workspace_name: str) -> None:
    async with AsyncClient(server, workspace=workspace_name) as priors:
        with pytest.raises(ProblemError) as wrong:
            await priors.search("x", k=1_000)
        with pytest.raises(NotFound, match="there is no run 'never'"):
            await priors.run_story("never")
    assert str(wrong.value) == "k: must be a whole number from 1 to 200; got 1000"
