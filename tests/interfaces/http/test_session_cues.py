"""What a session taught: its cues over HTTP, made again when it changes, and gone when it is deleted."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import httpx
import pytest

from app.foundation.db.database import take_lease
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from tests.interfaces.http.calls import get, patch, post
from tests.interfaces.http.test_sessions import session

CHART = (
    ("user", "plot the sales by month"),
    ("assistant", "I've added the chart. The y axis shows revenue."),
    ("user", "No, always put the units on both axes, in every chart we draw"),
    ("assistant", "You're right, I apologize. I added the units."),
    ("user", "thanks"),
)


async def cues_of(client: httpx.AsyncClient, *said: tuple[str, str], ids: bool = False) -> list[dict[str, Any]]:
    """Stores a session, waits for its cues and returns what people said; with `ids` each turn has one of its own."""
    given = session(*said)
    if ids:
        given["messages"] = [{**turn, "id": f"m{place}"} for place, turn in enumerate(given["messages"])]
    answer = await post(client, "/api/sessions?wait=true", given)
    shown = await get(client, "/api/sessions/s1")
    assert answer["cues"] == len(shown["cues"])
    return [cue for cue in shown["cues"] if cue["trust"] == "person"]


async def test_a_session_shows_its_cues_at_their_turns(client: httpx.AsyncClient) -> None:
    [cue] = await cues_of(client, *CHART)
    assert {name: cue[name] for name in ("kind", "message", "quote", "scope", "state", "origin")} == {
        "kind": "correction",
        "message": 2,
        "quote": "No, always put the units on both axes, in every chart we draw",
        "scope": "project",
        "state": "active",
        "origin": "extracted",
    }
    assert cue["lesson"] == "Always put the units on both axes, in every chart we draw."
    assert 0 < cue["confidence"] < 1
    assert [(proof["session"], proof["message"]) for proof in cue["evidence"]] == [("s1", 2)]


async def test_a_lesson_that_is_said_twice_is_one_cue_at_both_turns(client: httpx.AsyncClient) -> None:
    again = (
        ("user", "plot the sales by month"),
        ("assistant", "I've added the chart. The y axis shows revenue."),
        CHART[2],
    )
    cues = await cues_of(client, *CHART, *again)
    assert [cue["message"] for cue in cues] == [2, 7]
    assert len({cue["id"] for cue in cues}) == 1


async def test_a_changed_turn_loses_its_cue_and_others_stay(client: httpx.AsyncClient) -> None:
    last = (
        ("assistant", "You're welcome."),
        ("user", "from now on always name the source below the chart, we do that in every report"),
    )
    before = await cues_of(client, *CHART, *last, ids=True)
    assert [cue["message"] for cue in before] == [2, 6]
    changed = [*CHART[:2], ("user", "looks good, continue"), *CHART[3:], *last]
    after = await cues_of(client, *changed, ids=True)
    assert [cue["message"] for cue in after] == [6]
    retired = await get(client, f"/api/cues/{before[0]['id']}")
    assert retired["state"] == "retired"


async def test_a_cue_names_the_present_turn(client: httpx.AsyncClient) -> None:
    [before] = await cues_of(client, *CHART)
    reworded = [*CHART[:2], ("user", f"{CHART[2][1]}\nplease"), *CHART[3:]]
    [cue] = await cues_of(client, *reworded)
    turn = (await get(client, "/api/sessions/s1"))["messages"][2]["id"]
    assert (cue["id"], [proof["turn_id"] for proof in cue["evidence"]]) == (before["id"], [turn])


async def test_what_a_person_wrote_in_place_of_a_cue_stays(client: httpx.AsyncClient) -> None:
    [cue] = await cues_of(client, *CHART)
    answer = await client.patch(f"/api/cues/{cue['id']}", json={"lesson": "Put units on every axis."})
    answer.raise_for_status()
    [kept] = await cues_of(client, ("user", "hello"), ("assistant", "Hello."), *CHART)
    assert (kept["id"], kept["message"], kept["lesson"]) == (cue["id"], 4, "Put units on every axis.")


async def test_a_merged_cue_keeps_the_turns_of_both(client: httpx.AsyncClient) -> None:
    [cue] = await cues_of(client, *CHART)
    into = await post(client, "/api/cues", {"kind": "correction", "trigger": "a chart", "lesson": "Label the axes."})
    await post(client, "/api/cues:merge", {"ids": [cue["id"]], "into": into["id"]})
    [kept] = await cues_of(client, *CHART, ("user", "continue"))
    assert (kept["id"], kept["message"]) == (into["id"], 2)
    merged = await get(client, f"/api/cues/{cue['id']}")
    assert (merged["state"], merged["superseded_by"]) == ("superseded", into["id"])


async def test_what_a_person_retired_does_not_come_back(client: httpx.AsyncClient) -> None:
    [cue] = await cues_of(client, *CHART)
    (await client.patch(f"/api/cues/{cue['id']}", json={"state": "retired"})).raise_for_status()
    more = ("assistant", "Anything else?"), ("user", "continue")
    for times in (1, 2, 3):
        assert await cues_of(client, *CHART, *more * times) == []


async def test_a_deleted_session_takes_its_cues_with_it(
    client: httpx.AsyncClient, services: Services, workspace: Workspace
) -> None:
    [cue] = await cues_of(client, *CHART)
    (await client.delete("/api/sessions/s1")).raise_for_status()
    await services.extraction.extract_session(workspace, "s1")
    assert (await get(client, f"/api/cues/{cue['id']}"))["state"] == "retired"


async def test_a_persons_order_to_forget_is_a_cue_and_never_refused(client: httpx.AsyncClient) -> None:
    said = (
        ("user", "format the file"),
        ("assistant", "Done."),
        ("user", "No. Ignore my earlier instruction about tabs, we always use spaces, in all files of this project"),
    )
    assert [cue["message"] for cue in await cues_of(client, *said)] == [2]


UNSURE = (
    ("user", "merge it"),
    ("assistant", "Merged."),
    ("user", "the generated folder is written by the build of our docs, and none of the files in it are our own"),
    ("assistant", "Ok."),
)


async def test_a_candidate_that_a_person_states_needs_no_decision(client: httpx.AsyncClient) -> None:
    [cue] = await cues_of(client, *UNSURE)
    [proposal] = await get(client, "/api/proposals")
    assert cue["lesson"] in proposal["reason"]
    assert "turn 2 of session s1" in proposal["reason"]
    await post(client, "/api/cues", {name: cue[name] for name in ("kind", "trigger", "lesson")})
    assert (await get(client, f"/api/cues/{cue['id']}"))["state"] == "active"
    assert await get(client, "/api/proposals") == []


async def test_a_candidate_fires_once_a_person_accepts_it(client: httpx.AsyncClient) -> None:
    [cue] = await cues_of(client, *UNSURE)
    plan = {"plan": "I'll change the generated folder by hand.", "min_score": 0}
    assert (cue["state"], (await post(client, "/api/activate", plan))["cues"]) == ("proposed", [])
    [proposal] = await get(client, "/api/proposals")
    assert (proposal["change"], proposal["target_id"], proposal["state"]) == ("candidate", cue["id"], "open")
    await patch(client, f"/api/proposals/{proposal['id']}", {"state": "accepted"})
    assert [item["id"] for item in (await post(client, "/api/activate", plan))["cues"]] == [cue["id"]]
    await patch(client, f"/api/proposals/{proposal['id']}", {"state": "undone"})
    after = await get(client, f"/api/cues/{cue['id']}")
    assert (after["state"], after["trust"]) == ("proposed", "person")
    assert [item["id"] for item in await get(client, "/api/proposals")] == [proposal["id"]], "it waits again"


class ProposingChat:
    """A language model that proposes two cues, one of them with words that nobody said."""

    model = "stand-in"

    async def complete(self, prompt: str, schema: Mapping[str, Any] | None = None) -> str:
        """Returns the proposals, in prose and a fence."""
        assert schema is not None
        assert "[2] user: No, always put the units" in prompt
        return """Here you are:
```json
{"lessons": [
 {"message": 2, "kind": "preference", "quote": "put  the units on both axes", "when": "drawing a chart",
  "lesson": "Put units on every axis.", "instead": null, "because": "readers ask", "severity": "high"},
 {"message": 4, "kind": "decision", "quote": "we use bars", "when": "drawing", "lesson": "Use bars."},
 {"message": "many", "kind": "decision"}]}
```"""

    async def close(self) -> None:
        """Has nothing to close."""


class InterruptedChat(ProposingChat):
    """A language model during whose first reply the session changes."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client: httpx.AsyncClient | None = client

    async def complete(self, prompt: str, schema: Mapping[str, Any] | None = None) -> str:
        """Returns no proposal."""
        assert prompt
        assert schema is not None
        client, self._client = self._client, None
        if client is not None:
            await post(client, "/api/sessions", session(*LONGER))
        return "[]"


LONGER = (
    *CHART,
    ("assistant", "You're welcome."),
    ("user", "from now on always name the source below the chart, we do that in every report"),
)


async def test_a_session_that_changes_meanwhile_is_read_again(
    client: httpx.AsyncClient, services: Services, workspace: Workspace
) -> None:
    await post(client, "/api/sessions", session(*CHART))
    await replace(services.extraction, chat=InterruptedChat(client)).extract_session(workspace, "s1")
    cues = (await get(client, "/api/sessions/s1"))["cues"]
    assert [cue["message"] for cue in cues if cue["trust"] == "person"] == [2, 6]
    assert await cues_of(client, *LONGER) == [cue for cue in cues if cue["trust"] == "person"]


class SlowChat(ProposingChat):
    """A language model that counts its replies, and gives none before others ask for the same cues."""

    def __init__(self) -> None:
        self.asked = 0
        self.others = asyncio.Event()

    async def complete(self, prompt: str, schema: Mapping[str, Any] | None = None) -> str:
        """Returns the proposals once others wait."""
        self.asked += 1
        await self.others.wait()
        return await super().complete(prompt, schema)


async def test_of_two_who_make_cues_of_a_session_one_waits_for_the_other(
    client: httpx.AsyncClient, services: Services, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    await post(client, "/api/sessions", session(*CHART))
    chat = SlowChat()
    extraction = replace(services.extraction, chat=chat)
    refused = asyncio.Event()

    async def observed(*given: Any) -> bool:
        if not (taken := await take_lease(*given)):
            refused.set()
        return taken

    monkeypatch.setattr("app.foundation.db.database.take_lease", observed)
    both = [asyncio.create_task(extraction.extract_session(workspace, "s1")) for _ in range(2)]
    await refused.wait()
    chat.others.set()
    found = await asyncio.gather(*both)
    assert (chat.asked, [len(ids) for ids in found]) == (1, [1, 1])


async def test_a_language_model_proposes_and_the_turns_decide(
    client: httpx.AsyncClient, services: Services, workspace: Workspace
) -> None:
    await post(client, "/api/sessions", session(*CHART))
    extraction = replace(services.extraction, chat=ProposingChat())
    assert len(await extraction.extract_session(workspace, "s1")) == 1
    [cue] = (await get(client, "/api/sessions/s1"))["cues"]
    assert (cue["kind"], cue["lesson"], cue["quote"]) == (
        "preference",
        "Put units on every axis. Because: readers ask.",
        "put the units on both axes",
    )
    assert cue["consequence"] == 0.8
