"""What memory did to later runs, over HTTP: the report, its exports, the estimates, Review, and the ranking."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import httpx
import numpy as np
import pytest

from app.errors import Unavailable
from app.foundation.db.database import Database
from app.insight.effect import ledger, service
from app.insight.effect.ledger import ScoredRun, Slot
from app.insight.effect.service import Effects
from app.storage.effects import Effect
from app.storage.memories.memory import NewMemory
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from tests.conftest import workspace_in
from tests.interfaces.http.calls import get, patch, post

NOTE = {"kind": "note", "title": "Auctions", "body": "The tea auction of Mombasa publishes weekly volumes as a table."}
ISSUE = "P0: the market size has no source"
RUNS, EXPLORE = 300, 0.3


async def record(client: httpx.AsyncClient, number: int, **fields: Any) -> None:
    stages = {"research": {"tokens": 1_000, "cost": 0.5}}
    moments = {"started_at": "2026-01-05T10:00:00Z", "finished_at": "2026-01-05T10:01:00Z"}
    await post(
        client, "/api/runs", {"run_id": f"run-{number}", "task_type": "scan", "stages": stages, **moments, **fields}
    )


async def test_a_workspace_without_runs_has_a_report_that_says_so(client: httpx.AsyncClient) -> None:
    found = await get(client, "/api/effect")
    assert (found["runs"], found["draws"], found["helpful"], found["estimated_at"]) == (0, None, [], None)
    assert found["limits"] == ["No finished run is in this period, so there is nothing to compare."]
    assert "nothing to compare" in (await get(client, "/api/effect?format=markdown"))["document"]


async def test_runs_with_history_stand_beside_runs_without(client: httpx.AsyncClient) -> None:
    await post(client, "/api/memories?wait=true", NOTE)
    for number in (1, 2):
        await post(client, "/api/history", {"query": "tea auction of Mombasa", "run_id": f"run-{number}"})
        await record(client, number, final_score=8.0)
    await record(client, 3, final_score=5.0)
    await record(client, 4, final_score=6.0)
    found = await get(client, "/api/effect")
    measures = {item["name"]: item for item in found["history"]["measures"]}
    assert (found["history"]["given"], found["history"]["without"]) == (2, 2)
    assert measures["score"]["difference"]["mean"] == pytest.approx(2.5)
    assert measures["cost"]["given"]["mean"] == pytest.approx(0.5)
    assert measures["tokens"]["without"]["mean"] == 1_000
    assert measures["duration"]["given"]["mean"] == 60
    assert [item["label"] for item in found["weeks"]] == ["2026-01-05"]
    assert [item["label"] for item in found["task_types"]] == ["scan"]


async def test_a_report_is_of_the_runs_of_a_period_and_a_task_type(client: httpx.AsyncClient) -> None:
    await record(client, 1, final_score=8.0)
    await record(client, 2, final_score=8.0, task_type="review")
    assert (await get(client, "/api/effect?task_type=review"))["runs"] == 1
    assert (await get(client, "/api/effect?since=2026-01-06T00:00:00Z"))["runs"] == 0
    assert (await get(client, "/api/effect?until=2026-01-06T00:00:00Z"))["runs"] == 2
    answer = await client.get("/api/effect?since=2026-01-06T00:00:00Z&until=2026-01-05T00:00:00Z")
    assert answer.status_code == 400
    assert "must be after `since`" in answer.text
    answer = await client.get("/api/effect?task_type=%00")
    assert (answer.status_code, "task_type: contains a NUL" in answer.text) == (400, True)


async def test_a_run_that_ends_before_it_began_has_no_duration(client: httpx.AsyncClient) -> None:
    await record(client, 1, final_score=8.0, finished_at="2026-01-05T09:00:00Z")
    found = await get(client, "/api/effect")
    assert {item["name"]: item["without"] for item in found["history"]["measures"]}["duration"] is None
    assert "No run names its duration." in found["limits"]


async def test_an_issue_that_judges_name_again_is_counted_and_an_alert(
    client: httpx.AsyncClient, services: Services, workspace: Workspace
) -> None:
    for number in (1, 2, 3):
        metadata = {"case": "tea", "version": f"v{number}"}
        await record(client, number, final_score=5.0, issues=[ISSUE], metadata=metadata)
    await services.cases.match(workspace)
    found = await get(client, "/api/effect")
    (alert,) = found["alerts"]
    assert (alert["severity"], alert["versions"]) == ("P0", ["v1", "v2", "v3"])
    assert found["history"]["repeat_rate_without"] == 1
    assert [item["repeat_rate_without"] for item in found["versions"]] == [None, 1, 1]
    assert (await get(client, "/api/effect?versions=4"))["alerts"] == []


async def test_a_report_on_some_runs_has_the_alerts_and_memories_of_these_alone(
    client: httpx.AsyncClient, services: Services, workspace: Workspace, judged: list[UUID]
) -> None:
    for number in (1_001, 1_002, 1_003):
        metadata = {"case": "tea", "version": f"v{number}"}
        fields = {"issues": [ISSUE], "metadata": metadata, "task_type": "review"}
        await record(client, number, final_score=5.0, **fields)
    await services.cases.match(workspace)
    scan, review = [await get(client, f"/api/effect?task_type={name}") for name in ("scan", "review")]
    assert (scan["alerts"], [item["id"] for item in scan["harmful"]]) == ([], [str(judged[0])])
    assert (len(review["alerts"]), review["harmful"]) == (1, [])
    assert any("runs at most, of all periods and task types" in one for one in review["limits"])
    assert (await get(client, "/api/effect?since=2026-01-06T00:00:00Z"))["alerts"] == []
    whole = await get(client, "/api/effect")
    assert (len(whole["alerts"]), len(whole["harmful"])) == (1, 1)
    assert not any("all periods" in one for one in whole["limits"])


async def test_a_report_says_which_runs_it_leaves_out(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2, 3):
        await record(client, number, final_score=5.0)
    assert (await get(client, "/api/effect"))["left_out"] == 0
    monkeypatch.setattr(service, "MOST_REPORTED", 2)
    found = await get(client, "/api/effect")
    assert (found["runs"], found["left_out"]) == (2, 1)
    told = "There are 3 finished runs; the latest 2 are compared, and 1 earlier run is left out."
    assert told in found["limits"]
    assert told in (await get(client, "/api/effect?format=markdown"))["document"]


async def test_an_estimate_that_fails_stops_no_other_workspace(
    own_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [await workspace_in(own_services.database, name) for name in ("one", "other")]
    tried: list[str] = []

    async def fail(_: Effects, tenant: Workspace) -> int:
        tried.append(tenant.name)
        raise Unavailable("the effects were not estimated")

    monkeypatch.setattr(Effects, "estimate", fail)
    await own_services.effects.estimate_all(own_services.database.across)
    assert {workspace.name for workspace in made} <= set(tried)


async def test_a_retry_of_a_recall_counts_as_one_draw(services: Services, workspace: Workspace) -> None:
    """It draws the same slot again, so it changes no probability."""
    found = await services.write_gate.remember(workspace, [NewMemory(kind="note", body="Tea.")])
    ids = [memory_id for memory_id in found.ids if memory_id]
    for with_runs in (True, False):
        await ledger_of(services.database, workspace, ids, harm=0.0, runs=1, with_runs=with_runs)
    async with services.database.session(workspace) as session:
        (slot,) = await ledger.slots(session, ["run-0"])
    assert slot.propensity == pytest.approx(1 - EXPLORE)


async def ledger_of(
    database: Database,
    workspace: Workspace,
    ids: Sequence[UUID],
    *,
    harm: float,
    runs: int = RUNS,
    with_runs: bool = True,
) -> None:
    """Writes runs that recalled all of these memories; draws withheld one of them, and the first does harm."""
    chance = np.random.default_rng(7)
    propensity = 1 - EXPLORE / len(ids)
    async with database.session(workspace) as session:
        for number in range(runs):
            empty = int(chance.integers(len(ids))) if chance.random() < EXPLORE else None
            score = float(np.clip(6.5 + chance.normal() - harm * (empty != 0), 0, 10))
            values = {"run": f"run-{number}", "score": score, "propensity": propensity}
            if with_runs:
                await session.execute(RUN, values)
            shown = [memory_id for place, memory_id in enumerate(ids) if place != empty]
            values |= {"ids": shown, "empty": None if empty is None else ids[empty], "place": (empty or 0) + 1}
            await session.execute(RECALL, values)


RUN = """
INSERT INTO runs (workspace_id, run_id, task_type, final_score, started_at, finished_at)
VALUES (%(workspace_id)s, %(run)s, 'scan', %(score)s, now(), now())
"""
RECALL = """
WITH recall AS (
    INSERT INTO recalls (workspace_id, recall_id, purpose, query, run_id, parameters, mode, degraded, took_ms, withheld)
    SELECT %(workspace_id)s, gen_random_uuid(), 'history', 'tea', %(run)s, '{}', 'hybrid', '[]', 1,
        CASE WHEN %(empty)s::uuid IS NULL THEN '[]' ELSE jsonb_build_array(jsonb_build_object('rank', %(place)s::int,
            'memory_id', %(empty)s::uuid, 'score', 1, 'reason', 'draw', 'propensity', %(propensity)s::real)) END
    RETURNING workspace_id, recall_id
)
INSERT INTO recall_hits (workspace_id, recall_id, rank, memory_id, score, explain, propensity)
SELECT workspace_id, recall_id, place, memory_id, 1, '{}', %(propensity)s
FROM recall CROSS JOIN unnest(%(ids)s::uuid[]) WITH ORDINALITY AS given(memory_id, place)
"""


@pytest.fixture
async def judged(services: Services, workspace: Workspace) -> list[UUID]:
    """Three notes that 300 runs recalled; the first costs a run two points, and Review knows it."""
    bodies = [f"{NOTE['body']} It is the {name} market of the region." for name in ("first", "second", "third")]
    found = await services.write_gate.remember(
        workspace, [NewMemory(kind="note", title=body[-30:], body=body) for body in bodies]
    )
    ids = [memory_id for memory_id in found.ids if memory_id]
    await ledger_of(services.database, workspace, ids, harm=2.0)
    assert await services.effects.estimate(await services.workspaces.resolve_id(workspace.workspace_id))
    return ids


async def test_a_harmful_memory_is_named_with_its_evidence(client: httpx.AsyncClient, judged: list[UUID]) -> None:
    found = await get(client, "/api/effect")
    worst = found["harmful"][0]
    assert (worst["id"], worst["flagged"], worst["basis"]) == (str(judged[0]), True, "experimental")
    assert worst["low"] <= -2.0 <= worst["high"] < 0
    assert "a draw withheld it" in worst["why"]
    assert found["draws"]["without"] > worst["runs_without"] > 0


async def test_estimates_are_computed_again_only_after_a_run_has_changed(
    services: Services, workspace: Workspace, judged: list[UUID], client: httpx.AsyncClient
) -> None:
    assert len(judged) == 3
    assert await services.effects.estimate(workspace) == 0
    await record(client, 1, final_score=8.0)
    assert await services.effects.estimate(workspace) > 0


async def test_a_run_that_is_scored_while_an_estimate_runs_is_in_the_next_one(
    services: Services, workspace: Workspace, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The estimates find no effect here, which is no reason to repeat them."""
    seen: list[int] = []

    loop = asyncio.get_running_loop()

    def estimate(runs: Sequence[ScoredRun], _slots: Sequence[Slot]) -> list[Effect]:
        if not seen:
            asyncio.run_coroutine_threadsafe(record(client, 2, final_score=8.0), loop).result()
        seen.append(len(runs))
        return []

    monkeypatch.setattr(service, "estimate_effects", estimate)
    await services.effects.estimate(workspace)
    assert seen == []
    await record(client, 1, final_score=8.0)
    async with services.database.session(workspace) as slow:
        # Its moment is that of its begin, before the estimates.
        await slow.execute(RUN, {"run": "run-3", "score": 5.0})
        for _ in range(3):
            await services.effects.estimate(workspace)
        assert seen == [1, 2]
    for _ in range(2):
        await services.effects.estimate(workspace)
    assert seen == [1, 2, 3]
    assert (await get(client, "/api/effect"))["estimated_at"] is not None


async def test_a_harmful_memory_goes_to_review_and_is_deleted_once_a_person_says_so(
    client: httpx.AsyncClient, judged: list[UUID]
) -> None:
    (proposal,) = await get(client, "/api/proposals")
    assert (proposal["change"], proposal["cue_ids"]) == ("harmful", [str(judged[0])])
    assert "a draw withheld it" in proposal["reason"]
    await patch(client, f"/api/proposals/{proposal['id']}", {"state": "accepted"})
    hits = (await post(client, "/api/search", {"query": NOTE["body"]}))["hits"]
    assert str(judged[0]) not in {hit["id"] for hit in hits}
    assert hits
    await patch(client, f"/api/proposals/{proposal['id']}", {"state": "undone"})
    hits = (await post(client, "/api/search", {"query": NOTE["body"]}))["hits"]
    assert str(judged[0]) in {hit["id"] for hit in hits}


async def test_effects_change_the_ranking_once_the_workspace_says_so(
    client: httpx.AsyncClient, judged: list[UUID]
) -> None:
    query = {"query": f"{NOTE['body']} first market", "k": 3}
    before = (await post(client, "/api/search", query))["hits"]
    assert {hit["explain"].get("influence") for hit in before} == {None}
    assert (await client.patch("/api/settings", json={"uses_effects": True})).json()["uses_effects"] is True
    after = {hit["id"]: hit for hit in (await post(client, "/api/search", query))["hits"]}
    worst, same = after[str(judged[0])], next(hit for hit in before if hit["id"] == str(judged[0]))
    assert -0.1 <= worst["explain"]["influence"] < -0.02
    assert worst["score"] == pytest.approx(same["score"] + worst["explain"]["influence"], abs=1e-4)
    assert (await get(client, "/api/effect"))["uses_effects"] is True
    await client.patch("/api/settings", json={"uses_effects": False})
    again = (await post(client, "/api/search", query))["hits"]
    assert {hit["explain"].get("influence") for hit in again} == {None}


async def test_a_declined_proposal_does_not_come_back(
    client: httpx.AsyncClient, services: Services, workspace: Workspace, judged: list[UUID]
) -> None:
    (proposal,) = await get(client, "/api/proposals")
    assert proposal["cue_ids"] == [str(judged[0])]
    await patch(client, f"/api/proposals/{proposal['id']}", {"state": "declined"})
    await record(client, 1, final_score=8.0)
    await services.effects.estimate(workspace)
    assert await get(client, "/api/proposals") == []
