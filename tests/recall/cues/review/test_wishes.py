"""Preferences: a choice that is made again on another day gains confidence, in the same or in other words."""

from typing import Any

import httpx
import pytest

from tests.interfaces.http.calls import get, patch, post

pytestmark = pytest.mark.meaning


def said(session: str, day: int, lesson: str, over: str = "spaces", trigger: str = "indenting code") -> dict[str, Any]:
    return {
        "kind": "preference",
        "trigger": trigger,
        "lesson": lesson,
        "confidence": 0.6,
        "details": {"preferred_over": over},
        "evidence": [{"session": session, "message": 0, "at": f"2026-03-{day:02}T10:00:00Z"}],
    }


async def test_the_same_words_on_another_day_raise_the_confidence_once(client: httpx.AsyncClient) -> None:
    found = [
        (await post(client, "/api/cues", said(session, day, "Use tabs.")))["id"]
        for session, day in (("a", 1), ("b", 1), ("c", 2), ("c", 2))
    ]
    cue = await get(client, f"/api/cues/{found[0]}")
    assert (len(set(found)), len(cue["evidence"]), cue["seen_on"]) == (1, 3, ["2026-03-01", "2026-03-02"])
    assert round(cue["confidence"], 3) == 0.84


def session(name: str, day: int, text: str) -> dict[str, Any]:
    turns = [
        {"role": "user", "text": "format the file"},
        {"role": "assistant", "text": "Done, I've formatted it."},
        {"role": "user", "text": text},
        {"role": "assistant", "text": "You're right, I changed it."},
    ]
    return {"id": name, "started_at": f"2026-03-{day:02}T10:00:00Z", "messages": turns}


async def learn(client: httpx.AsyncClient, given: dict[str, Any]) -> None:
    await post(client, "/api/sessions?wait=true", given)


async def preferences(client: httpx.AsyncClient) -> list[dict[str, Any]]:
    """Returns the preferences for tabs."""
    found = (await get(client, "/api/cues?kind=preference&state=active"))["cues"]
    return [cue for cue in found if "tabs" in cue["lesson"]]


async def test_one_choice_in_other_words_is_one_cue_with_all_sessions_and_can_be_parted(
    client: httpx.AsyncClient,
) -> None:
    await post(client, "/api/sessions?wait=true", session("one", 1, "In this project we always use tabs, not spaces"))
    (first,) = await preferences(client)
    await learn(client, session("three", 1, "In this project always use braces, not spaces"))
    again = session("two", 2, "please, in this project we always want tabs instead of spaces, in every file")
    await learn(client, again)
    (both,) = await preferences(client)
    assert {proof["session"] for proof in both["evidence"]} == {"one", "two"}
    assert both["confidence"] > first["confidence"]
    (proposal,) = await get(client, "/api/proposals?state=accepted")
    assert proposal["change"] == "merge"
    await patch(client, f"/api/proposals/{proposal['id']}", {"state": "undone"})
    assert len(await preferences(client)) == 2
    await learn(client, again)
    assert len(await preferences(client)) == 2


async def test_a_wish_that_two_sessions_state_without_an_alternative_is_one_cue(client: httpx.AsyncClient) -> None:
    first = "never apply without my ok: always run terraform plan and show me the output before any apply"
    second = (
        "you don't apply anything without showing me the terraform plan first and getting my ok, also not small changes"
    )
    for name, day, text in (("one", 1, first), ("two", 9, second)):
        await learn(client, session(name, day, text))
    found = [cue for cue in (await get(client, "/api/cues?state=active"))["cues"] if "terraform" in cue["lesson"]]
    assert [{proof["session"] for proof in cue["evidence"]} for cue in found] == [{"one", "two"}]


async def test_list_comprehensions_that_two_sessions_ask_for_are_one_preference(client: httpx.AsyncClient) -> None:
    first = "Use a list comprehension instead of map/filter."
    second = "I prefer list comprehensions over map/filter. Please rewrite."
    for name, day, text in (("one", 1, first), ("two", 9, second)):
        await learn(client, session(name, day, text))
    found = (await get(client, "/api/cues?kind=preference&state=active"))["cues"]
    assert [{proof["session"] for proof in cue["evidence"]} for cue in found] == [{"one", "two"}]


async def test_what_failed_ends_the_wish_for_it(client: httpx.AsyncClient) -> None:
    for name, day, text in (("one", 1, "Always use approach A."), ("two", 9, "Approach A failed, use B.")):
        await post(client, "/api/cues", {**said(name, day, text, over="", trigger="choosing an approach")})
    [holds] = (await get(client, "/api/cues?kind=preference&state=active"))["cues"]
    [ended] = (await get(client, "/api/cues?kind=preference&state=superseded"))["cues"]
    assert (holds["lesson"], ended["superseded_by"]) == ("Approach A failed, use B.", holds["id"])


async def test_a_later_decision_takes_an_earlier_one_back(client: httpx.AsyncClient) -> None:
    offer = "Options:\n- Quarto: figures straight from the data\n- Word: everybody knows it"
    early = [
        {"role": "user", "text": "what do we write the reports in?"},
        {"role": "assistant", "text": offer},
        {"role": "user", "text": "quarto. we go with it because pasted figures were stale in the last report"},
        {"role": "assistant", "text": "Done, report.qmd is set up."},
    ]
    late = [
        {
            "role": "user",
            "text": "the lawyers can't comment in html, they work with track changes only. so we go back to word for"
            " all reports, quarto is dead, because nobody there can open it",
        },
        {"role": "assistant", "text": "Done, the reports are in Word again."},
    ]
    for name, day, turns in (("one", 1, early), ("two", 9, late)):
        await learn(client, {"id": name, "started_at": f"2026-03-{day:02}T10:00:00Z", "messages": turns})
    states = {cue["evidence"][0]["session"]: cue["state"] for cue in (await get(client, "/api/cues"))["cues"]}
    assert states == {"one": "superseded", "two": "active"}
