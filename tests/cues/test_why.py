"""Why something is as it is, over HTTP: decisions, reasons, failures and turns, and what nobody knows."""

from typing import Any

import httpx

from app.wiring import Services
from tests.api.calls import embed, get, post

PATH = {
    "kind": "decision",
    "trigger": "choosing how clients name the version of the HTTP interface",
    "lesson": "Put the version into the path.",
    "details": {
        "subject": "API versioning",
        "choice": "the version in the path",
        "alternatives": ["a header", "a query parameter"],
        "reasoning": "caches and logs show it",
    },
    "evidence": [{"session": "s47", "message": 3, "quote": "put it in the path", "at": "2026-05-02T10:00:00Z"}],
    "files": ["src/api/routes.py"],
}
HEADER = {
    "kind": "negative_result",
    "trigger": "naming the version in an Accept header",
    "lesson": "Do not name the API version in a header.",
    "details": {"attempted": "a version header", "failure_reason": "the CDN stripped it", "led_to": "the path"},
    "evidence": [{"session": "s40", "message": 9, "quote": "the CDN strips it", "at": "2026-05-01T10:00:00Z"}],
}
STORAGE = {
    "kind": "decision",
    "trigger": "storing the sessions of users",
    "lesson": "Keep sessions in Postgres.",
    "details": {"subject": "session storage", "choice": "Postgres", "alternatives": ["Redis"]},
}


async def stored(client: httpx.AsyncClient, services: Services, *cues: dict[str, Any]) -> list[str]:
    kept = await post(client, "/api/cues", list(cues))
    await embed(client, services)
    return list(kept["ids"])


async def test_a_decision_comes_with_its_reasons_what_failed_and_the_turns(
    client: httpx.AsyncClient, services: Services
) -> None:
    await stored(client, services, PATH, HEADER, STORAGE)
    found = await get(client, "/api/why?subject=API versioning")
    assert found["known"]
    (thread,) = found["threads"]
    assert thread["sessions"] == ["s40", "s47"]
    assert (thread["begins"][:10], thread["ends"][:10]) == ("2026-05-01", "2026-05-02")
    assert thread["outcome"] == "the version in the path"
    (decision,), (failed,) = thread["decisions"], thread["around"]
    assert decision["details"]["alternatives"] == ["a header", "a query parameter"]
    assert decision["evidence"][0] | {"at": ""} == {
        "source_id": None, "turn_id": None, "session": "s47", "path": "", "section": "", "message": 3,
        "quote": "put it in the path", "at": "",
    }  # fmt: skip
    assert failed["kind"] == "negative_result"
    assert "Because: the CDN stripped it" in found["markdown"]
    assert "session s40, message 9, 2026-05-01: “the CDN strips it”" in found["markdown"]


async def test_a_rejected_alternative_leads_to_its_decision(client: httpx.AsyncClient, services: Services) -> None:
    await stored(client, services, PATH, STORAGE)
    found = await get(client, "/api/why?subject=Redis")
    assert found["answer"] == "session storage: Postgres. The reasoning is not stated."


async def test_what_is_not_known_is_said(client: httpx.AsyncClient, services: Services) -> None:
    await stored(client, services, PATH, STORAGE)
    found = await get(client, "/api/why?subject=the colour of the logo")
    assert not found["known"]
    assert found["answer"] == "Not known: no decision on “the colour of the logo” is stored."
    assert found["threads"] == found["others"] == found["shaped_by"] == []


async def test_a_replaced_decision_stays_in_its_thread(client: httpx.AsyncClient, services: Services) -> None:
    newer = {**PATH, "trigger": "naming the version for clients", "lesson": "Name it in a header.", "files": []}
    newer["details"] = {"subject": "API versioning", "choice": "a header names it"}
    newer["evidence"] = [{"session": "s90", "message": 1, "at": "2027-01-05T10:00:00Z"}]
    old_id, new_id = await stored(client, services, PATH, newer)
    await post(client, "/api/cues:merge", {"ids": [old_id], "into": new_id})
    (thread,) = (await get(client, "/api/why?subject=API versioning"))["threads"]
    assert [item["state"] for item in thread["decisions"]] == ["superseded", "active"]
    assert thread["outcome"] == "a header names it (before: the version in the path)"


async def test_a_file_is_answered_by_the_sessions_that_shaped_it(client: httpx.AsyncClient, services: Services) -> None:
    edit = {"name": "Edit", "input": {"file_path": "src/api/routes.py", "old_string": "a", "new_string": "b"}}
    turns = [
        {"role": "user", "text": "Where does the version go? Put it into the path."},
        {"role": "assistant", "text": "I put it into the path.", "tools": [edit]},
    ]
    session = {"id": "s47", "started_at": "2026-05-02T10:00:00Z", "messages": turns}
    await post(client, "/api/sessions?wait=stored", session)
    await stored(client, services, {**PATH, "files": []}, STORAGE)
    found = await get(client, "/api/why?path=api/routes.py")
    (touch,) = found["shaped_by"]
    assert (touch["session"], touch["ordinal"], touch["action"]) == ("s47", 1, "changed")
    assert [item["subject"] for item in found["threads"]] == ["API versioning"], "it was decided two turns later"
    unknown = await get(client, "/api/why?path=src/other.py&symbol=run")
    assert unknown["answer"] == "Not known: no decision on “src/other.py:run” is stored."


async def test_a_file_is_answered_by_the_decisions_about_it(client: httpx.AsyncClient, services: Services) -> None:
    await stored(client, services, PATH, STORAGE)
    found = await get(client, "/api/why?path=api/routes.py")
    assert [item["subject"] for item in found["threads"]] == ["API versioning"]


async def test_one_thing_is_asked_at_a_time(client: httpx.AsyncClient) -> None:
    for query in ("", "?subject=a&path=b", "?subject=the"):
        answer = await client.get(f"/api/why{query}")
        assert answer.status_code == 400, answer.text
        assert "subject" in answer.text
