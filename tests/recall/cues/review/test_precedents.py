"""A precedent tells how the run that it names was judged."""

from typing import Any

import httpx
import pytest

from tests.interfaces.http.calls import OUTPUT, get, post
from tests.interfaces.http.test_sessions import session

INVOICES = {"run_id": "r1", "task": "Build the invoices page of the shop", "output": OUTPUT}
JUDGED = {"final_score": 8.2, "verdict": "accepted", "issues": ["the totals lack a currency", "a typo"]}
OTHER = {"run_id": "r2", "task": "Build the orders page of the shop", "final_score": 3.0, "output": OUTPUT}
SAID = (
    ("user", "build the customers page"),
    ("assistant", "I've built the customers page."),
    ("user", "As we did with the invoices page, use one table per country"),
    ("assistant", "Done."),
)


async def the_cue(client: httpx.AsyncClient, *said: tuple[str, str]) -> dict[str, Any]:
    """Stores a session, waits for its cues, and returns the one that a person's turn holds."""
    await post(client, "/api/sessions?wait=true", session(*said))
    [cue] = [cue for cue in (await get(client, "/api/sessions/s1"))["cues"] if cue["trust"] == "person"]
    return dict(cue)


async def test_a_precedent_tells_how_its_run_was_judged(client: httpx.AsyncClient) -> None:
    for run in (INVOICES | JUDGED, OTHER):
        await post(client, "/api/runs?wait=true", {**run, "remember": True})
    [made] = (await get(client, "/api/runs/r1"))["observations"]
    cue = await the_cue(client, *SAID)
    outcome = "scored 8.2 of 10, accepted; main issue: the totals lack a currency"
    assert cue["kind"] == "precedent"
    assert cue["details"] == {
        "situation": "build the customers page",
        "action": made["title"],
        "outcome": outcome,
    }
    assert cue["lesson"] == (
        "As we did with the invoices page, use one table per country."
        f" The run “Build the invoices page of the shop” {outcome}."
    )
    linked = (await get(client, f"/api/memories/{cue['id']}/around"))["links"]
    assert ("derived_from", made["id"]) in {(link["relation"], link["memory_id"]) for link in linked}


async def test_a_run_that_is_judged_later_is_told_at_the_next_look(client: httpx.AsyncClient) -> None:
    await post(client, "/api/runs", OTHER)
    await post(client, "/api/runs", INVOICES)
    before = await the_cue(client, *SAID)
    assert "outcome" not in before["details"]
    await post(client, "/api/runs", {"run_id": "r1", "final_score": 4.0, "verdict": "rejected"})
    await post(client, "/api/cues:tend", {})
    judged = await get(client, f"/api/cues/{before['id']}")
    assert judged["details"]["outcome"] == "scored 4 of 10, rejected"
    assert judged["confidence"] < before["confidence"]
    again = await the_cue(client, *SAID, ("user", "thanks"))
    assert (again["id"], again["lesson"], again["edited"]) == (before["id"], judged["lesson"], [])


@pytest.mark.parametrize(
    "text",
    [
        "do it as we did with the billing service",
        "mach es wie bei der Rechnungsseite",
        "сделай, как мы сделали с отчётом по Вьетнаму",
    ],
)
async def test_what_was_done_before_is_a_precedent_in_each_language(client: httpx.AsyncClient, text: str) -> None:
    assert (await the_cue(client, *SAID[:2], ("user", text)))["kind"] == "precedent"


@pytest.mark.parametrize(
    ("text", "goal", "steps"),
    [
        ("To release: 1. bump it\n2. run the tests\n3. push the tag", "To release", ["bump it", "run the tests"]),
        (
            "Beim Release: erst testen, dann die Version erhöhen, danach den Tag pushen",
            "Beim Release",
            ["erst testen", "die Version erhöhen"],
        ),
        (
            "При релизе: сначала запусти тесты, потом подними версию, затем запушь тег",
            "При релизе",
            ["сначала запусти тесты", "подними версию"],
        ),
    ],
)
async def test_stated_steps_are_a_procedure(client: httpx.AsyncClient, text: str, goal: str, steps: list[str]) -> None:
    cue = await the_cue(client, *SAID[:2], ("user", text))
    assert (cue["kind"], cue["details"]["goal"], cue["details"]["steps"][:2]) == ("procedure", goal, steps)
    assert len(cue["details"]["steps"]) == 3
