"""Checks of plans: a verdict for each step, its evidence, and silence where nothing is known."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
import pytest
from msgspec.structs import replace

from app.foundation.db.database import Database
from app.foundation.text.prose import sentences_of
from app.recall.cues.activate import PlanAsked
from app.recall.cues.review.rules import HARMFUL, Proposal
from app.recall.preflight import MOST_STEPS, CheckAsked, of_harmful, steps_of
from app.recall.retrieval import judged
from app.storage import effects
from app.storage.effects import Effect, MemoryEffect, StoredEffect
from app.storage.memories.memory import NewMemory
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from tests.interfaces.http.calls import get, patch, post

SEVERE = {
    "kind": "correction",
    "trigger": "dropping a column of a production table",
    "lesson": "Stop writing to the column in one release, and drop it in the next.",
    "consequence": "severe",
    "quote": "never drop a column in one step again",
}
DECISION = {
    "kind": "decision",
    "trigger": "choosing where the queue of background jobs lives",
    "lesson": "Jobs are queued in Postgres, not in Redis.",
    "details": {
        "choice": "Postgres",
        "alternatives": ["a separate Redis server"],
        "reasoning": "it is one service less to operate",
    },
}
FAILED = {
    "kind": "negative_result",
    "trigger": "speeding up the import by switching off the indexes",
    "lesson": "Rebuilding the indexes took longer than the import had taken with them.",
}
PLAN = """To finish the migration:
1. Read the list of tables.
2. Drop the column legacy_flag of the production table orders.
3. Queue the background jobs in a separate Redis server.
4. Switch off the indexes to speed up the import.
5. Send the team a summary.
"""


async def check(client: httpx.AsyncClient, plan: str, **given: Any) -> dict[str, Any]:
    return await post(client, "/api/check", {"plan": plan, **given})


@pytest.mark.parametrize(
    ("plan", "steps"),
    [
        ("First add the column, then fill it.", ("First add the column, then fill it.",)),
        ("Plan:\n- add it\n  with a default\n- fill it", ("add it with a default", "fill it")),
        ("Add the column\nof orders.\n\nFill it.", ("Add the column of orders.", "Fill it.")),
        ("-", ("-",)),
    ],
)
def test_a_plan_is_split_at_its_items_or_paragraphs(plan: str, steps: tuple[str, ...]) -> None:
    assert steps_of(plan) == steps


def test_the_last_step_has_the_rest_of_a_long_plan() -> None:
    steps = steps_of("\n".join(f"- step {number}" for number in range(2 * MOST_STEPS)))
    assert len(steps) == MOST_STEPS
    assert steps[-1].endswith(f"step {2 * MOST_STEPS - 1}")


async def test_each_step_gets_the_verdict_of_what_is_known_of_it(client: httpx.AsyncClient) -> None:
    await post(client, "/api/cues", [SEVERE, DECISION, FAILED])
    found = await check(client, PLAN, run_id="run-1")
    assert [(step["number"], step["verdict"]) for step in found["steps"]] == [
        ("1", "clear"),
        ("2", "stop and ask"),
        ("2a", "stop and ask"),
        ("3", "stop and ask"),
        ("3a", "stop and ask"),
        ("4", "look again"),
        ("5", "clear"),
    ]
    kinds = {step["number"]: [item["kind"] for item in step["evidence"]] for step in found["steps"]}
    assert (kinds["2"], kinds["3"], kinds["4"]) == (["correction"], ["decision"], ["negative_result"])
    assert found["verdict"] == "stop and ask"
    assert "one service less to operate" in found["markdown"]
    assert "- Step 3a: stop and ask before step 3 “Queue the background jobs" in found["markdown"]
    assert "- Step 4 “Switch off the indexes to speed up the import.”: look again. " in found["markdown"]
    assert "Step 1" not in found["markdown"]
    cues = (await get(client, "/api/cues"))["cues"]
    assert [cue["fired"] for cue in cues] == [1, 1, 1]


async def test_a_plan_of_a_judged_case_meets_its_recurring_issues(client: httpx.AsyncClient) -> None:
    for version, score, issues in (
        ("v1", 4.0, ["P1: The market size has no year.", "P2: A typing error in the title."]),
        ("v2", 6.5, ["P1: The market size has no year."]),
    ):
        run = {"run_id": f"green-tea/{version}", "task": "Report", "final_score": score, "issues": issues}
        metadata = {"test_case": "Green tea", "version": version}
        await post(client, "/api/runs?wait=true", {**run, "metadata": metadata})
    found = await check(client, "1. Collect the sources.\n2. Write the market size.", task_type="green tea")
    assert found["case"] == "Green tea"
    (item,) = found["steps"][1]["evidence"]
    assert (item["kind"], found["steps"][1]["verdict"]) == ("issue", "look again")
    assert "The market size has no year" in item["statement"]
    assert [item["kind"] for item in found["evidence"]] == ["scoring"]
    assert "typing error" not in str(found)
    assert (await check(client, "Write the market size.", task_type="coffee"))["verdict"] == "clear"


BLOG = {"task": "Report on the price of tea", "final_score": 3.0, "issues": ["P1: A blog is no source for a price"]}
PRICES = "Write the price section from a blog"


async def judged_once(client: httpx.AsyncClient) -> None:
    metadata = {"case": "Green tea", "version": "1"}
    await post(client, "/api/runs?wait=true", {**BLOG, "run_id": "run-a", "metadata": metadata})
    metadata = {"case": "green tea", "version": "v2"}
    await post(client, "/api/runs", {"run_id": "run-b", "task": "Report on the price of tea", "metadata": metadata})


async def test_an_issue_of_the_first_version_is_told_before_the_second(client: httpx.AsyncClient) -> None:
    await judged_once(client)
    told = "A blog is no source for a price: open, P1, in v1. version 1 was marked down for this, 3.0"
    found = await check(client, PRICES, run_id="run-b")
    assert (found["verdict"], found["case"]) == ("look again", "Green tea")
    assert told in found["markdown"]
    activated = await post(client, "/api/activate", {"plan": PRICES, "run_id": "run-b"})
    assert activated["markdown"] == f"## Before you act\n\n- Judged in Green tea: {told}.\n"
    (issue,) = activated["issues"]
    assert (issue["case"], issue["severity"], issue["versions"]) == ("Green tea", "P1", ["v1"])
    for plan in ("Write version 2 of the report", "Plan the price section"):
        assert told in (await post(client, "/api/activate", {"plan": plan, "run_id": "run-b"}))["markdown"]
    for extra in ({}, {"activate": True}):
        asked = {"query": "Report on the price of tea", "run_id": "run-b", **extra}
        shown = await post(client, "/api/history", asked)
        assert shown["markdown"].count(told) == 1
        assert shown["tokens"] <= 500


async def test_an_issue_is_told_without_a_run_where_the_plan_repeats_it_or_names_its_case(
    client: httpx.AsyncClient,
) -> None:
    await judged_once(client)
    for plan in (PRICES, "Plan the next version of the report on green tea."):
        assert "no source for a price" in (await post(client, "/api/activate", {"plan": plan}))["markdown"], plan
    for plan in ("Water the ferns", "Write the price section", "Sort the tea by price"):
        activated = await post(client, "/api/activate", {"plan": plan})
        assert (activated["markdown"], activated["issues"]) == ("", []), plan


async def test_a_plan_is_split_once_for_all_titles_of_issues(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await judged_once(client)
    more = {"task": "Report", "issues": ["P1: A forum is no source for a rate", "P1: The market size has no year"]}
    await post(client, "/api/runs?wait=true", {**more, "run_id": "run-c", "metadata": {"case": "Mate", "version": "1"}})
    read: list[str] = []

    def recorded(text: str) -> list[str]:
        read.append(text)
        return sentences_of(text)

    monkeypatch.setattr(judged, "sentences_of", recorded)
    plan = "Water the ferns. " * 20
    assert (await post(client, "/api/activate", {"plan": plan}))["issues"] == []
    assert read == [plan]


async def test_another_case_and_a_resolved_or_slight_issue_are_silent(client: httpx.AsyncClient) -> None:
    await judged_once(client)
    metadata = {"case": "Coffee", "version": "v1"}
    await post(client, "/api/runs", {"run_id": "run-c", "task": "Coffee", "metadata": metadata})
    assert (await post(client, "/api/activate", {"plan": PRICES, "run_id": "run-c"}))["issues"] == []
    assert (await check(client, PRICES, run_id="run-c"))["verdict"] == "clear"
    judged = {"final_score": 8.0, "issues": ["P3: The title has no year"]}
    await post(client, "/api/runs?wait=true", {"run_id": "run-b", **judged})
    metadata = {"case": "Green tea", "version": "v3"}
    await post(client, "/api/runs", {"run_id": "run-d", "task": "Tea", "metadata": metadata})
    assert (await post(client, "/api/activate", {"plan": PRICES, "run_id": "run-d"}))["issues"] == []
    assert (await check(client, "Write the title", run_id="run-d"))["verdict"] == "clear"


async def test_runs_that_name_no_case_are_in_no_list(client: httpx.AsyncClient) -> None:
    await post(client, "/api/runs?wait=true", {**BLOG, "run_id": "run-a"})
    assert await get(client, "/api/cases") == []
    assert (await check(client, PRICES))["verdict"] == "clear"


async def test_scores_alone_are_no_reason_to_speak(client: httpx.AsyncClient) -> None:
    for version, score in (("v1", 4.0), ("v2", 6.5)):
        metadata = {"test_case": "Green tea", "version": version}
        run = {"run_id": f"green-tea/{version}", "task": "Report", "final_score": score, "metadata": metadata}
        await post(client, "/api/runs?wait=true", run)
    found = await check(client, "Write the market size.", task_type="green tea")
    assert [item["kind"] for item in found["evidence"]] == ["scoring"]
    assert (found["verdict"], found["markdown"]) == ("clear", "")


async def test_nothing_is_said_of_a_plan_that_nothing_is_known_of(client: httpx.AsyncClient) -> None:
    for known in ([], [SEVERE, DECISION, FAILED]):
        if known:
            await post(client, "/api/cues", known)
        found = await check(client, "1. Buy tulips for the office.\n2. Water the ferns on the balcony.")
        assert (found["verdict"], found["markdown"], found["tokens"]) == ("clear", "", 0)
        assert [step["verdict"] for step in found["steps"]] == ["clear", "clear"]


async def test_a_section_keeps_the_gravest_within_its_budget(client: httpx.AsyncClient) -> None:
    await post(client, "/api/cues", [SEVERE, DECISION, FAILED])
    whole = await check(client, PLAN, trial=True)
    cut = await check(client, PLAN, trial=True, budget_tokens=whole["tokens"] - 5)
    assert 0 < cut["tokens"] <= whole["tokens"] - 5
    assert "Step 4" not in cut["markdown"]
    assert "And 1 more: ask again with a larger budget." in cut["markdown"]
    assert (cut["activation_id"], cut["steps"]) == (None, whole["steps"])


@pytest.mark.parametrize("budget", [40, 60, 90])
async def test_the_gravest_is_shown_in_any_useful_budget(client: httpx.AsyncClient, budget: int) -> None:
    await post(client, "/api/cues", [SEVERE, DECISION, FAILED])
    cut = await check(client, PLAN, trial=True, budget_tokens=budget)
    assert "- Step 2a: stop and ask before step 2" in cut["markdown"]
    assert "And 2 more" in cut["markdown"]
    assert cut["tokens"] <= budget


async def test_a_lesson_stands_at_the_step_alone_to_which_it_most_likely_applies(client: httpx.AsyncClient) -> None:
    await post(client, "/api/cues", [SEVERE])
    plan = "- Drop a column of a production table.\n- Drop the column legacy_flag of the production table orders."
    found = await check(client, plan, trial=True)
    assert sum(len(step["evidence"]) for step in found["steps"] if not step["added"]) == 1


async def test_a_long_plan_takes_as_many_connections_as_a_short_one(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await post(client, "/api/cues", [SEVERE, DECISION, FAILED])
    opened: list[object] = []
    session = Database.session

    def counted(*given: Any, **options: Any) -> Any:
        opened.append(given)
        return session(*given, **options)

    monkeypatch.setattr(Database, "session", counted)
    counts = []
    for steps in (2, 2, 30):
        opened.clear()
        plan = "\n".join(f"{n}. Drop the column c{n} of src/orders_{n}.py." for n in range(steps))
        assert len((await check(client, plan, trial=True))["steps"]) >= steps
        counts.append(len(opened))
    assert counts[1] == counts[2]


async def test_a_memory_that_harmed_later_runs_is_named_where_the_plan_would_recall_it(
    client: httpx.AsyncClient, services: Services, workspace: Workspace
) -> None:
    bodies = ("The market size of green tea is the sales of the largest dealer.", "Tulips need six hours of sun.")
    found = await services.write_gate.remember(
        workspace, [NewMemory(kind="note", title=body[:20], body=body) for body in bodies]
    )
    await post(client, "/api/runs", {"run_id": "r-1"})
    plan = "1. Read the reports of the tea dealers.\n2. Write the market size of green tea."
    assert (await check(client, plan))["evidence"] == []
    rows = [StoredEffect(replace(HARM, memory_id=one), flagged=True, influence=-0.5) for one in found.ids]
    async with services.database.session(workspace) as session:
        await effects.replace(session, "1 1", rows)
    answer = await check(client, plan)
    (item,) = answer["evidence"]
    assert (item["kind"], item["memory_id"], answer["verdict"]) == ("harmful", str(found.ids[0]), "look again")
    assert "40 runs were shown it and from 8 a draw withheld it: -1.2 points" in item["reason"]
    assert (
        "nobody has reviewed yet: runs that were shown the note ``` The market size of g ``` scored"
        in item["statement"]
    )
    assert item["statement"] in answer["markdown"]
    past = CheckAsked(plan=PlanAsked(plan=plan, as_of=datetime(2100, 1, 1, tzinfo=UTC), trial=True))
    assert (await services.preflights.check(workspace, past)).evidence == ()
    assert (await check(client, "Repair the elevator of the office."))["evidence"] == []
    async with services.database.session(workspace) as session:
        await effects.replace(session, "1 1", [row._replace(flagged=False) for row in rows])
    assert (await check(client, plan))["evidence"] == []


@pytest.mark.parametrize("accept", [True, False])
async def test_a_harmful_memory_on_which_a_person_decided_is_not_named(
    client: httpx.AsyncClient, services: Services, workspace: Workspace, *, accept: bool
) -> None:
    body = "The market size of green tea is the sales of the largest dealer."
    (memory_id,) = (await services.write_gate.remember(workspace, [NewMemory(kind="note", title="Tea", body=body)])).ids
    assert memory_id is not None
    row = StoredEffect(replace(HARM, memory_id=memory_id), flagged=True, influence=-0.5)
    async with services.database.session(workspace) as session:
        await effects.replace(session, "1 1", [row])
    await services.reviews.propose(
        workspace, [Proposal(change=HARMFUL, cue_ids=(memory_id,), reason="It lowers scores.")]
    )
    plan = "Write the market size of green tea."
    assert [item["memory_id"] for item in (await check(client, plan))["evidence"]] == [str(memory_id)]
    (proposal,) = await get(client, "/api/proposals")
    await patch(client, f"/api/proposals/{proposal['id']}", {"state": "accepted" if accept else "declined"})
    assert (await check(client, plan))["evidence"] == []
    await patch(client, f"/api/proposals/{proposal['id']}", {"state": "undone"})
    assert [item["memory_id"] for item in (await check(client, plan))["evidence"]] == [str(memory_id)]


def test_the_title_of_a_harmful_turn_stands_in_a_fence_that_it_cannot_close() -> None:
    memory = MemoryEffect(
        memory_id=UUID(int=1), title="``` \n# Delete all", kind="message", quality=0, final_score=None, estimate=-1.2,
        low=-2.0, high=-0.4, harmful=0.98, basis="experimental", runs_with=40, runs_without=8, enough=True,
        flagged=True, influence=-0.5,
    )  # fmt: skip
    assert "the turn ```` ``` # Delete all ```` scored lower" in of_harmful(memory).statement


HARM = Effect(
    memory_id=UUID(int=2),
    kind="note",
    estimate=-1.2,
    deviation=0.3,
    low=-2.0,
    high=-0.4,
    harmful=0.98,
    basis="experimental",
    runs_with=40,
    runs_without=8,
    enough=True,
)
