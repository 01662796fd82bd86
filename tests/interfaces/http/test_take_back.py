"""A wrong lesson is taken back with everything that says the same, and comes back whole."""

from typing import Any

import httpx
import pytest

from app.foundation.db.database import Database
from app.insight.same import store
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from tests.conftest import link_pending
from tests.interfaces.http.calls import embed, get, patch, post

LESSON = "Never drop the column orders.legacy_total before the yearly audit has read it."
OTHER = "The beam drifts at night, so calibrate it each morning."


async def _reported(client: httpx.AsyncClient, path: str, text: str) -> None:
    await post(client, "/api/reports", {"path": path, "content": f"# Rules\n\n{text}\n"})


async def _sent(client: httpx.AsyncClient, services: Services) -> str:
    """Stores the lesson in five places, and another one beside them; returns the id of its first copy."""
    await _reported(client, "rules/a.md", LESSON)
    await _reported(client, "rules/b.md", f"- **{LESSON}**")
    turn = {"id": "s1", "messages": [{"role": "user", "text": f"Please note: {LESSON}"}]}
    await post(client, "/api/sessions", turn)
    cue = {
        "kind": "correction", "trigger": "dropping a column of orders", "lesson": LESSON,
        "evidence": [{"session": "s1", "message": 0, "quote": LESSON}],
    }  # fmt: skip
    await post(client, "/api/cues", [cue])
    await post(client, "/api/memories", {"kind": "note", "body": OTHER})
    note = (await post(client, "/api/memories", {"kind": "note", "body": "Column work waits for the audit."}))["ids"][0]
    first = await _id_of(client, "rules/a.md")
    link = {"from_id": note, "to_id": first, "relation": "derived_from"}
    await post(client, "/api/links", {"links": [link]})
    await embed(client, services)
    return first


async def _id_of(client: httpx.AsyncClient, path: str) -> str:
    memories = (await get(client, "/api/memories"))["memories"]
    return str(next(one["id"] for one in memories if (one["source"] or {}).get("title", "").endswith(path)))


async def _same(client: httpx.AsyncClient, memory_id: str, phrase: str = "") -> list[Any]:
    answer = await get(client, f"/api/memories/{memory_id}/same?phrase={phrase}")
    assert answer["more"] is False
    return list(answer["found"])


async def _noted(client: httpx.AsyncClient, *bodies: str) -> list[str]:
    return [(await post(client, "/api/memories", {"kind": "note", "body": body}))["ids"][0] for body in bodies]


async def _shown(client: httpx.AsyncClient) -> tuple[bool, list[Any]]:
    history = await post(client, "/api/history", {"query": LESSON, "trial": True})
    fired = await post(client, "/api/activate", {"plan": "drop the column orders.legacy_total", "trial": True})
    return "legacy_total" in history["markdown"], fired["cues"]


async def test_what_says_the_same_goes_at_once_and_comes_back(client: httpx.AsyncClient, services: Services) -> None:
    first = await _sent(client, services)
    found = await _same(client, first)
    assert [(one["memory"]["kind"], one["why"]) for one in found[:1]] == [("chunk", "chosen")]
    why = {(one["memory"]["kind"], one["why"]) for one in found}
    assert why >= {("chunk", "copy"), ("message", "holds"), ("cue", "cue"), ("note", "derived")}
    assert OTHER not in {one["memory"]["body"] for one in found}
    ids = [one["memory"]["id"] for one in found]
    # One copy alone changes nothing: another one takes its place.
    await patch(client, "/api/memories", {"state": "deleted", "ids": [first]})
    assert (await _shown(client))[0]
    await patch(client, "/api/memories", {"state": "live", "ids": [first]})
    gone = await patch(client, "/api/memories", {"state": "deleted", "ids": ids})
    assert (sorted(gone["changed"]), gone["missing"]) == (sorted(ids), [])
    assert await _shown(client) == (False, [])
    assert [one["why"] for one in await _same(client, first)] == ["chosen"]
    back = await patch(client, "/api/memories", {"state": "live", "ids": ids})
    assert sorted(back["changed"]) == sorted(ids)
    assert (await _shown(client))[0]


@pytest.mark.parametrize("kind", ["cue", "message"])
async def test_it_begins_at_any_of_them(client: httpx.AsyncClient, services: Services, kind: str) -> None:
    first = await _sent(client, services)
    start = next(
        one["id"] for one in (await get(client, "/api/memories"))["memories"] if one["kind"] == kind
    )  # fmt: skip
    found = {one["memory"]["id"] for one in await _same(client, start)}
    assert first in found


async def test_a_phrase_says_what_of_a_long_text_is_meant(client: httpx.AsyncClient, services: Services) -> None:
    await _reported(client, "rules/c.md", f"{LESSON} {OTHER}")
    await _sent(client, services)
    long = await _id_of(client, "rules/c.md")
    bodies = [one["memory"]["body"] for one in await _same(client, long, OTHER)]
    assert len(bodies) == 2
    assert all(OTHER in body for body in bodies)


async def test_near_texts_are_found_by_their_links(
    client: httpx.AsyncClient, services: Services, database: Database, workspace: Workspace
) -> None:
    told = "The pump of line four must be drained fully before the valve is opened again on Monday."
    again = "The pump of line four must be drained fully before the valve is opened again on a Monday."
    ids = [(await post(client, "/api/memories", {"kind": "note", "body": body}))["ids"][0] for body in (told, again)]
    one, other = ids
    await embed(client, services)
    await link_pending(database, workspace)
    found = {item["memory"]["id"]: item["why"] for item in await _same(client, one)}
    assert found.get(other) in {"near", "copy"}


async def test_a_turn_finds_the_chunk_that_says_it_below_a_heading(
    client: httpx.AsyncClient, services: Services, database: Database, workspace: Workspace
) -> None:
    await _reported(client, "rules/a.md", LESSON)
    await post(client, "/api/sessions", {"id": "s1", "messages": [{"role": "user", "text": f"Please note: {LESSON}"}]})
    await embed(client, services)
    await link_pending(database, workspace)
    chunk = await _id_of(client, "rules/a.md")
    turn = next(one["id"] for one in (await get(client, "/api/memories"))["memories"] if one["kind"] == "message")
    found = {one["memory"]["id"]: one["why"] for one in await _same(client, turn)}
    assert found.get(chunk) == "near"


async def test_a_short_text_is_found_only_where_nothing_else_is_said(client: httpx.AsyncClient) -> None:
    short, *_ = await _noted(client, "ok", "The token is read by the worker.", "It is ok to restart the worker.")
    await _reported(client, "rules/short.md", "OK.")
    bodies = {one["memory"]["body"] for one in await _same(client, short)}
    assert {body.rstrip(".").lower() for body in bodies} == {"ok"}


async def test_a_text_is_found_in_whole_words_and_a_short_phrase_too(client: httpx.AsyncClient) -> None:
    whole, *others = await _noted(client, "Restart the worker at noon", "Restart the worker at noontime, not earlier.")
    others += await _noted(client, "Restart the worker at noon, not earlier.")
    assert [one["memory"]["id"] for one in await _same(client, whole)] == [whole, others[1]]
    assert {one["memory"]["id"] for one in await _same(client, whole, "noon")} == {whole, others[1]}


async def test_a_short_quote_of_a_cue_finds_no_other_turn(client: httpx.AsyncClient) -> None:
    for session in ("s1", "s2"):
        turns = [{"role": "assistant", "text": f"Shall I {session}?"}, {"role": "user", "text": "Yes, do it."}]
        await post(client, "/api/sessions", {"id": session, "messages": turns})
    cue = {
        "kind": "decision", "trigger": "deploying the service", "lesson": LESSON,
        "evidence": [{"session": "s1", "message": 1, "quote": "Yes, do it."}],
    }  # fmt: skip
    await post(client, "/api/cues", [cue])
    note = (await _noted(client, LESSON))[0]
    for start in (note, next(m["id"] for m in (await get(client, "/api/memories"))["memories"] if m["kind"] == "cue")):
        sources = {(one["memory"]["source"] or {}).get("uri", "") for one in await _same(client, start)}
        assert not any(uri.endswith("s2") for uri in sources)


async def test_what_is_left_out_is_said(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = await _noted(client, *(f"{LESSON} Noted by number {number}." for number in range(4)), LESSON)
    monkeypatch.setattr(store, "MOST_FOUND", 2)
    monkeypatch.setattr(store, "_HOLDING", store._HOLDING.replace("LIMIT 501", "LIMIT 3"))
    answer = await get(client, f"/api/memories/{ids[-1]}/same")
    assert answer["more"] is True
    assert len(answer["found"]) <= 3
