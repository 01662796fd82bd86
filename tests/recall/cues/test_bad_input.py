"""Texts, times and lengths that Postgres cannot hold: each is answered with what is wrong."""

import json
from typing import Any

import httpx
import pytest

from tests.recall.cues.test_activate import DROP, stored

NUL, EARLY = "a\x00b", "0001-01-01T00:00:00+14:00"


@pytest.mark.parametrize(
    ("sent", "named"),
    [
        ({"quote": NUL}, "quote"),
        ({"files": [NUL]}, "files"),
        ({"action_types": [NUL]}, "action_types"),
        ({"kind": "decision", "details": {"alternatives": [NUL]}}, "details.alternatives"),
        ({"valid_from": EARLY}, "valid_from"),
        ({"valid_until": "9999-12-31T23:59:59-14:00"}, "valid_until"),
    ],
)
async def test_a_cue_that_cannot_be_stored_says_why(
    client: httpx.AsyncClient, sent: dict[str, Any], named: str
) -> None:
    (cue,) = await stored(client, DROP)
    new = {**DROP, **sent}
    for answer in (
        await client.post("/api/cues", content=json.dumps(new)),
        await client.patch(f"/api/cues/{cue}", content=json.dumps(sent)),
    ):
        assert (answer.status_code, named in answer.text) == (400, True), answer.text


@pytest.mark.parametrize(
    ("method", "path", "sent"),
    [
        ("GET", "/api/cues?text=%00", None),
        ("GET", "/api/cues?session=%00", None),
        ("GET", "/api/cues?action_type=%00", None),
        ("GET", "/api/why?path=%00", None),
        ("GET", "/api/why?symbol=%00", None),
        ("PATCH", "/api/settings", {"action_types": {"a:b": [NUL]}}),
        ("GET", "/api/sessions/%FF", None),
        ("DELETE", "/api/sessions/%ED%A0%80", None),
        ("GET", "/api/runs/%FF", None),
        ("POST", "/api/activate", {"plan": "x", "as_of": EARLY}),
        ("POST", "/api/cues", {**DROP, "evidence": [{"session": "s", "at": EARLY}]}),
        ("POST", "/api/history", {"query": "x" * 300_001, "activate": True, "budget_tokens": 300}),
    ],
)
async def test_a_question_that_cannot_be_asked_is_a_bad_request(
    client: httpx.AsyncClient, method: str, path: str, sent: Any
) -> None:
    answer = await client.request(method, path, content=None if sent is None else json.dumps(sent))
    assert (answer.status_code, answer.json()["status"]) == (400, 400), answer.text
    if path == "/api/history":
        assert "query" in answer.text
        assert "plan" not in answer.text
