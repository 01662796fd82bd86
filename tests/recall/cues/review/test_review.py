"""What keeps a store of cues sound, over HTTP: merges, proposals, decisions, and taking them back."""

from typing import Any
from unittest.mock import ANY

import httpx
import pytest

from app.recall.cues.cue import starter_cues
from app.recall.cues.review.review import owners_of_cues
from app.recall.cues.review.rules import IDLE_SESSIONS
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from tests.conftest import link_pending, workspace_in
from tests.interfaces.http.calls import NAMES_OF_BRANCHES, embed, get, patch, post

pytestmark = pytest.mark.meaning

COLUMN = {
    "kind": "correction",
    "trigger": "dropping a column in a production migration",
    "lesson": "Never drop a column directly; stop reading it first.",
    "confidence": 0.6,
    "evidence": [{"session": "s47", "message": 3, "quote": "never drop it directly", "at": "2026-05-01T10:00:00Z"}],
}
AGAIN = {
    **COLUMN,
    "trigger": "dropping columns in a production migration",
    "evidence": [{"session": "s52", "message": 8, "quote": "not directly!", "at": "2026-05-09T10:00:00Z"}],
}


async def tended(client: httpx.AsyncClient, services: Services, *cues: dict[str, Any]) -> dict[str, Any]:
    """Stores cues, links them as a worker does, and looks through them."""
    if cues:
        assert not (await post(client, "/api/cues", list(cues)))["rejected"]
    await embed(client, services)
    await link_pending(services.database, await workspace_in(services.database, client.headers["X-Workspace"]))
    return await post(client, "/api/cues:tend", None)


async def cues_of(client: httpx.AsyncClient, **query: str) -> list[dict[str, Any]]:
    return list((await client.get("/api/cues", params=query)).json()["cues"])


async def test_near_duplicates_become_one_and_are_parted_again(client: httpx.AsyncClient, services: Services) -> None:
    found = await tended(client, services, COLUMN, AGAIN)
    (proposal,) = found["proposals"]
    assert (proposal["change"], proposal["state"]) == ("merge", "accepted")
    (one,) = await cues_of(client, state="active")
    assert {item["session"] for item in one["evidence"]} == {"s47", "s52"}
    assert one["confidence"] == pytest.approx(0.84)
    undone = await patch(client, f"/api/proposals/{proposal['id']}", {"state": "undone"})
    assert undone["state"] == "undone"
    both = await cues_of(client, state="active")
    assert [(len(item["evidence"]), item["confidence"]) for item in both] == [(1, pytest.approx(0.6))] * 2
    assert (await tended(client, services))["proposals"] == []


async def test_a_worker_tends_the_cues_of_every_workspace_that_has_some(
    client: httpx.AsyncClient, services: Services, workspace: Workspace
) -> None:
    assert (workspace.workspace_id, "") not in await owners_of_cues(services.database.across)
    await post(client, "/api/cues", COLUMN)
    assert (workspace.workspace_id, "") in await owners_of_cues(services.database.across)


async def test_cues_that_differ_in_a_negation_stay_two(client: httpx.AsyncClient, services: Services) -> None:
    other = {**AGAIN, "lesson": "Drop a column directly; stop reading it first."}
    assert "merge" not in (await tended(client, services, COLUMN, other))["proposed"]


async def test_a_newer_cue_makes_an_older_one_stale_once_a_person_agrees(
    client: httpx.AsyncClient, services: Services
) -> None:
    older = {**COLUMN, "kind": "decision", "lesson": "Keep sessions in Redis.", "trigger": "choosing the session store"}
    older["details"] = {"subject": "session store", "choice": "Redis"}
    newer = {**older, "lesson": "Keep sessions in Postgres.", "evidence": AGAIN["evidence"]}
    newer["details"] = {"subject": "session store", "choice": "Postgres", "alternatives": ["Redis for sessions"]}
    # What a person says newer holds at once; what an agent concludes waits for a person.
    newer["trust"] = "agent"
    (proposal,) = (await tended(client, services, older, newer))["proposals"]
    assert (proposal["change"], proposal["state"]) == ("stale", "open")
    assert len(await cues_of(client, state="active")) == 2
    await patch(client, f"/api/proposals/{proposal['id']}", {"state": "accepted"})
    assert [item["details"]["choice"] for item in await cues_of(client, state="active")] == ["Postgres"]
    (gone,) = await cues_of(client, state="superseded")
    assert gone["superseded_by"] == proposal["target_id"]
    again = await client.patch(f"/api/proposals/{proposal['id']}", json={"state": "declined"})
    assert again.status_code == 400
    opened = await patch(client, f"/api/proposals/{proposal['id']}", {"state": "undone"})
    assert (opened["state"], opened["decided_at"]) == ("open", None)
    assert len(await cues_of(client, state="active")) == 2
    await patch(client, f"/api/proposals/{proposal['id']}", {"state": "accepted"})
    assert [item["details"]["choice"] for item in await cues_of(client, state="active")] == ["Postgres"]


async def test_corrections_of_one_kind_from_three_sessions_propose_a_broader_cue(
    client: httpx.AsyncClient, services: Services
) -> None:
    cues = [
        {**COLUMN, "trigger": "starting on a task", "lesson": lesson, "action_types": ["version-control:push"],
         "evidence": [{"session": f"s{number}", "message": 1, "at": f"2026-05-0{number}T10:00:00Z"}]}
        for number, lesson in enumerate(NAMES_OF_BRANCHES, 1)
    ]  # fmt: skip
    unlike = ("Write the tests first.", "Ask before pushing.", "Rest.")
    apart = [
        {**cue, "trigger": f"starting on task {number}", "lesson": lesson}
        for number, (cue, lesson) in enumerate(zip(cues, unlike, strict=True))
    ]
    assert (await tended(client, services, *apart))["proposals"] == []
    (proposal,) = (await tended(client, services, *cues))["proposals"]
    assert (proposal["change"], proposal["state"]) == ("broaden", "open")
    (proposed,) = await cues_of(client, state="proposed")
    await patch(client, f"/api/proposals/{proposal['id']}", {"state": "declined"})
    assert (await get(client, f"/api/cues/{proposed['id']}"))["state"] == "retired"
    again = await patch(client, f"/api/proposals/{proposal['id']}", {"state": "undone"})
    assert (again["state"], again["decided_at"]) == ("open", None)
    assert await cues_of(client, state="proposed") == [proposed | {"updated_at": ANY}]
    assert all(lesson in proposed["lesson"] for lesson in NAMES_OF_BRANCHES)
    assert {item["session"] for item in proposed["evidence"]} == {"s1", "s2", "s3"}
    await patch(client, f"/api/proposals/{proposal['id']}", {"state": "accepted"})
    assert (await get(client, f"/api/cues/{proposed['id']}"))["state"] == "active"
    again = await patch(client, f"/api/proposals/{proposal['id']}", {"state": "undone"})
    assert (again["state"], again["decided_at"]) == ("open", None)
    assert await cues_of(client, state="proposed") == [proposed | {"updated_at": ANY}]


async def test_corrections_of_one_family_of_mistakes_propose_a_broader_cue(
    client: httpx.AsyncClient, services: Services
) -> None:
    lessons = ("Show times in the time zone of the user.", "Parse dates in the format of the user's locale.")
    cues = [
        {"kind": "correction", "trigger": f"work number {number}", "lesson": lesson,
         "evidence": [{"session": f"s{number}", "message": 1, "at": f"2026-05-0{number}T10:00:00Z"}]}
        for number, lesson in enumerate(lessons, 1)
    ]  # fmt: skip
    assert (await tended(client, services, cues[0]))["proposals"] == []
    (proposal,) = (await tended(client, services, cues[1]))["proposals"]
    assert (proposal["change"], len(proposal["cue_ids"])) == ("broaden", 2)
    (proposed,) = await cues_of(client, state="proposed")
    assert proposed["trigger"].startswith("parsing, storing, showing, filtering or comparing dates and times")
    assert all(lesson in proposed["lesson"] for lesson in lessons)
    await patch(client, f"/api/proposals/{proposal['id']}", {"state": "accepted"})
    for plan in ("parse the birthday field", "add a date filter"):
        told = (await post(client, "/api/activate", {"plan": plan}))["cues"]
        assert [cue["id"] for cue in told] == [proposed["id"]]
    assert (await post(client, "/api/activate", {"plan": "add a button"}))["cues"] == []


async def test_a_cue_that_is_heeded_becomes_a_convention_of_a_file(
    client: httpx.AsyncClient, services: Services
) -> None:
    await tended(client, services, COLUMN)
    for _ in range(5):
        asked = await post(client, "/api/activate", {"plan": "drop a column in the migration"})
        heeded = [item["id"] for item in asked["cues"]]
        assert heeded
        await post(client, f"/api/activations/{asked['activation_id']}/outcome", {"heeded": heeded})
    (proposal,) = (await tended(client, services))["proposals"]
    assert proposal["change"] == "graduate"
    where = f"/api/proposals/{proposal['id']}"
    unnamed = await client.patch(where, json={"state": "accepted"})
    assert (unnamed.status_code, "artifact" in unnamed.text) == (400, True)
    await patch(client, where, {"state": "accepted", "artifact": "docs/conventions.md"})
    assert (await cues_of(client))[0]["files"] == ["docs/conventions.md"]
    await patch(client, where, {"state": "undone"})
    assert (await cues_of(client))[0]["files"] == []


async def test_a_cue_that_never_fires_while_its_files_change_is_flagged(
    client: httpx.AsyncClient, services: Services
) -> None:
    edit = {"name": "Edit", "input": {"file_path": "db/migrate.py", "old_string": "a", "new_string": "b"}}
    turns = [{"role": "user", "text": "Go on."}, {"role": "assistant", "text": "Changed it.", "tools": [edit]}]
    assert (await tended(client, services, {**COLUMN, "files": ["db/migrate.py"]}))["proposals"] == []
    for number in range(IDLE_SESSIONS):
        session = {"id": f"s{number}", "started_at": f"2090-01-{number + 1:02}T10:00:00Z", "messages": turns}
        await post(client, "/api/sessions", session)
    (proposal,) = (await tended(client, services))["proposals"]
    assert (proposal["change"], proposal["state"]) == ("retire", "open")
    assert proposal["reason"] == "has not fired in 20 sessions, and db/migrate.py changed meanwhile"
    await patch(client, f"/api/proposals/{proposal['id']}", {"state": "accepted"})
    assert await cues_of(client, state="active") == []
    await patch(client, f"/api/proposals/{proposal['id']}", {"state": "undone"})
    assert len(await cues_of(client, state="active")) == 1


async def test_an_own_cue_takes_the_place_of_one_of_the_first_library(
    client: httpx.AsyncClient, services: Services, workspace: Workspace
) -> None:
    assert (await services.cues.add(workspace, starter_cues())).stored == len(starter_cues())
    own = {**COLUMN, "trigger": "dropping a column in a database migration"}
    own["lesson"] = "Do it in two releases: stop reading the column first, then drop it."
    (proposal,) = (await tended(client, services, own))["proposals"]
    assert (proposal["change"], proposal["state"]) == ("merge", "accepted")
    (replaced,) = await cues_of(client, state="superseded")
    assert replaced["tags"] == ["starter"]
    assert (await get(client, f"/api/cues/{proposal['target_id']}"))["lesson"] == own["lesson"]


async def test_a_cue_that_contradicts_a_note_is_flagged(client: httpx.AsyncClient, services: Services) -> None:
    note = {
        "kind": "note",
        "title": "How we drop a column in a production migration",
        "body": "In a production migration, drop a column directly.",
        "occurred_at": "2026-01-01T00:00:00Z",
    }
    note_id = (await post(client, "/api/memories", note))["ids"][0]
    cue = {**COLUMN, "lesson": "In a production migration, never drop a column directly."}
    (proposal,) = (await tended(client, services, cue))["proposals"]
    assert (proposal["change"], proposal["relation"], proposal["target_id"]) == ("note", "contradicts", note_id)
    links = f"/api/memories/{note_id}/around"
    assert "supersedes" not in str(await get(client, links))
    await patch(client, f"/api/proposals/{proposal['id']}", {"state": "accepted"})
    assert "supersedes" in str(await get(client, links))


async def test_a_declined_proposal_is_not_made_again_but_can_be_opened_again(
    client: httpx.AsyncClient, services: Services
) -> None:
    note = {"kind": "note", "title": "Dropping a column in production", "occurred_at": "2026-01-01T00:00:00Z",
            "body": "Never drop a column directly; a column is dropped in the release after."}  # fmt: skip
    await post(client, "/api/memories", note)
    (proposal,) = (await tended(client, services, COLUMN))["proposals"]
    await patch(client, f"/api/proposals/{proposal['id']}", {"state": "declined"})
    assert (await tended(client, services))["proposals"] == []
    assert [item["id"] for item in await get(client, "/api/proposals?state=declined")] == [proposal["id"]]
    await patch(client, f"/api/proposals/{proposal['id']}", {"state": "undone"})
    assert [item["id"] for item in await get(client, "/api/proposals")] == [proposal["id"]]
    again = await client.patch(f"/api/proposals/{proposal['id']}", json={"state": "undone"})
    assert (again.status_code, "is open" in again.text) == (400, True)


async def test_probes_tell_the_cues_that_fire_from_those_that_do_not(
    client: httpx.AsyncClient, services: Services
) -> None:
    await tended(client, services, COLUMN)
    found = await post(client, "/api/probes:run", None)
    assert (found["cues"], found["recall"], found["stale"], found["weak"]) == (1, 1.0, 0, [])
